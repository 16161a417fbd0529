"""A small store that speaks S3 over HTTP, with faults on demand. In memory, for one bucket."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from msgspec import Struct, field

BUCKET, KEY, SECRET = "training", "AKIAEXAMPLEEXAMPLE00", "not/a+secret+of+anybody+0123456789abcdef"
_CODES = {
    503: "SlowDown", 403: "AccessDenied", 404: "NoSuchKey", 500: "InternalError", 411: "Bad",
}  # fmt: skip


class Store(Struct):
    """What it holds, what it was asked, and how it misbehaves."""

    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, tuple[str, dict[int, bytes]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)  # method and operation
    #: Of requests on objects every n-th is answered 503; 1 is each.
    throttles: int = 0
    #: Seconds before each answer; of those for objects alone.
    slow_s: float = 0.0
    #: Every n-th object that is got has a byte that is another.
    corrupts: int = 0
    #: Every n-th request on an object finds its connection closed in place of an answer.
    drops: int = 0
    dropped: int = 0
    #: Every n-th small object that is put is acknowledged and not kept.
    loses: int = 0
    #: Of every listing so many keys are left out.
    forgets: int = 0
    #: Operations that are not allowed: delete, put, uploads.
    denies: tuple[str, ...] = ()
    #: Operations that are answered 500, always.
    breaks: tuple[str, ...] = ()
    #: So many are answered, and then none until `goes_on`; -1: all of them.
    answers: int = -1
    goes_on: threading.Event = field(default_factory=threading.Event)
    most_at_once: int = 0
    _now: int = 0
    _turn: dict[str, Iterator[int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def nth(self, what: str, every: int) -> bool:
        """Whether it is this one's turn."""
        with self._lock:
            turn = next(self._turn.setdefault(what, count(1)))
        return bool(every) and turn % every == 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """How many are answered at once."""
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            yield
        finally:
            with self._lock:
                self._now -= 1


class _RefusedError(Exception):
    def __init__(self, status: int, code: str = "") -> None:
        super().__init__(code)
        self.status, self.code = status, code or _CODES[status]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    store: Store

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def _answer(self) -> None:
        body = self._body()
        if "/small-" in self.path and self.store.nth("drop", self.store.drops):
            self.store.dropped += 1
            self.close_connection = True
            return
        url = urlsplit(self.path)
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        asked = {name: values[0] for name, values in parse_qs(url.query, True).items()}
        with self.store.counted():
            try:
                self._hold(bucket, _operation(self.command, key, asked))
                self._done(key, asked, body)
            except _RefusedError as error:
                text = f"<Error><Code>{error.code}</Code><Message>{error.code} here</Message>"
                self._send(error.status, f"{text}</Error>".encode())

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815

    def _hold(self, bucket: str, operation: str) -> None:
        store = self.store
        store.asked.append(operation)
        if 0 <= store.answers < len(store.asked):
            store.goes_on.wait()
        if f"Credential={KEY}/" not in self.headers.get("Authorization", ""):
            raise _RefusedError(403, "InvalidAccessKeyId")
        if bucket != BUCKET:
            raise _RefusedError(404, "NoSuchBucket")
        if operation in store.denies:
            raise _RefusedError(403)
        if operation in store.breaks:
            raise _RefusedError(500)
        if operation in ("put", "get", "part"):
            time.sleep(store.slow_s)
            if store.nth("throttle", store.throttles):
                raise _RefusedError(503)

    def _done(self, key: str, asked: dict[str, str], body: bytes) -> None:
        operation = _operation(self.command, key, asked)
        getattr(self, f"_{operation}")(key, asked, body)

    def _put(self, key: str, _: dict[str, str], body: bytes) -> None:
        if "/small-" not in key or not self.store.nth("lose", self.store.loses):
            self.store.objects[key] = body
        self._send(200, b"", ETag=_etag(body))

    def _get(self, key: str, __: dict[str, str], ___: bytes) -> None:
        if key not in self.store.objects:
            raise _RefusedError(404)
        body = self.store.objects[key]
        if self.command == "GET" and self.store.nth("corrupt", self.store.corrupts):
            body = body[:-1] + bytes([body[-1] ^ 1])
        begin, _, end = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        if begin:
            body = body[int(begin) : int(end or len(body)) + 1]
        self._send(206 if begin else 200, body, ETag=_etag(body))

    def _delete(self, key: str, _: dict[str, str], body: bytes) -> None:
        for one in [key] if key else _between(body.decode(), "Key"):
            self.store.objects.pop(one, None)
        self._send(200 if body else 204, b"<DeleteResult></DeleteResult>" if body else b"")

    def _list(self, _: str, asked: dict[str, str], __: bytes) -> None:
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        keys = sorted(one for one in list(self.store.objects) if one.startswith(prefix))
        folders = {
            prefix + one[len(prefix) :].partition(delimiter)[0] + delimiter
            for one in keys if delimiter and delimiter in one[len(prefix) :]
        }  # fmt: skip
        keys = [one for one in keys if not any(one.startswith(each) for each in folders)]
        keys = keys[self.store.forgets if len(keys) > 1 else 0 :]
        after = asked.get("continuation-token", "")
        rest = [one for one in keys if one > after]
        shown = rest[:1000]
        told = "".join(
            f"<Contents><Key>{escape(one)}</Key>"
            f"<Size>{len(self.store.objects.get(one, b''))}</Size>"
            "<LastModified>2026-01-02T03:04:05.000Z</LastModified></Contents>" for one in shown
        )  # fmt: skip
        told += "".join(
            f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in folders
        )
        more = len(rest) > len(shown)
        told += f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        told += f"<KeyCount>{len(shown) + len(folders)}</KeyCount>"
        if more:
            told += f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>"
        self._send(200, f"<ListBucketResult>{told}</ListBucketResult>".encode())

    def _uploads(self, _: str, asked: dict[str, str], __: bytes) -> None:
        told = "".join(
            f"<Upload><Key>{escape(key)}</Key><UploadId>{name}</UploadId></Upload>"
            for name, (key, _) in self.store.uploads.items()
            if key.startswith(asked.get("prefix", ""))
        )
        self._send(200, f"<ListMultipartUploadsResult>{told}</ListMultipartUploadsResult>".encode())

    def _begin(self, key: str, _: dict[str, str], __: bytes) -> None:
        name = f"upload{len(self.store.asked)}"
        self.store.uploads[name] = (key, {})
        told = f"<UploadId>{name}</UploadId><Bucket>{BUCKET}</Bucket><Key>{escape(key)}</Key>"
        answer = f"<InitiateMultipartUploadResult>{told}</InitiateMultipartUploadResult>"
        self._send(200, answer.encode())

    def _part(self, _: str, asked: dict[str, str], body: bytes) -> None:
        self.store.uploads[asked["uploadId"]][1][int(asked["partNumber"])] = body
        self._send(200, b"", ETag=_etag(body))

    def _complete(self, key: str, asked: dict[str, str], _: bytes) -> None:
        parts = self.store.uploads.pop(asked["uploadId"])[1]
        self.store.objects[key] = b"".join(parts[one] for one in sorted(parts))
        told = f"<Key>{escape(key)}</Key><ETag>{_etag(b'x')}-{len(parts)}</ETag>"
        self._send(200, f"<CompleteMultipartUploadResult>{told}</CompleteMultipartUploadResult>"
                   .encode())  # fmt: skip

    def _abort(self, _: str, asked: dict[str, str], __: bytes) -> None:
        self.store.uploads.pop(asked["uploadId"], None)
        self._send(204, b"")

    def _body(self) -> bytes:
        """Whole; of the encoding `aws-chunked` what lies in its chunks."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
            return body
        whole, at = b"", 0
        while True:
            end = body.index(b"\r\n", at)
            size = int(body[at:end].split(b";")[0], 16)
            if not size:
                return whole
            whole += body[end + 2 : end + 2 + size]
            at = end + 4 + size

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _operation(method: str, key: str, asked: dict[str, str]) -> str:
    if "uploads" in asked:
        return "begin" if method == "POST" else "uploads"
    if "uploadId" in asked:
        return {"PUT": "part", "POST": "complete", "DELETE": "abort"}[method]
    if method == "DELETE" or "delete" in asked:
        return "delete"
    if not key:
        return "list"
    return "put" if method == "PUT" else "get"


def _etag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def _between(text: str, tag: str) -> list[str]:
    return [one.partition(f"</{tag}>")[0] for one in text.split(f"<{tag}>")[1:]]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Who asked went away: so they do."""


@contextmanager
def serving(store: Store) -> Iterator[dict[str, str]]:
    """A server for it; the environment by which a library of S3 finds it. At an address of its own:
    who was left waiting by an earlier one finds nobody."""

    class Handler(_Handler):
        pass

    Handler.store = store
    address = f"127.{1 + secrets.randbelow(250)}.{secrets.randbelow(250)}.1"
    server = _Server((address, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield environment(f"http://{address}:{server.server_address[1]}")
    finally:
        store.goes_on.set()
        server.shutdown()
        server.server_close()


def environment(endpoint: str, key: str = KEY) -> dict[str, str]:
    """What a user of it has set."""
    return {
        "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }  # fmt: skip
