"""What a store refuses, in words that begin alike whatever library tells it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .limit import NoAnswerError
from .masked import masked

#: What the words begin with; kinds of errors; pieces of what libraries say. The first that fits.
_KINDS: tuple[tuple[str, tuple[type[BaseException], ...], tuple[str, ...]], ...] = (
    ("no credentials found", (), (
        "NoCredentials", "PartialCredentials", "CredentialRetrieval", "DefaultCredentialsError",
        "Unable to locate credentials", "NoAuthTokenError", "ProfileNotFound",
    )),
    ("throttled", (), ("SlowDown", "reduce your request rate", "TooManyRequests", "503", "429")),
    ("access denied", (PermissionError,), (
        "AccessDenied", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken",
        "401", "403",
    )),
    ("no such object", (), ("NoSuchKey", "key does not exist")),
    ("no such bucket", (FileNotFoundError, NotADirectoryError), ("NoSuchBucket", "NotFound")),
    ("no answer", (NoAnswerError, TimeoutError), ("ReadTimeout", "TimeoutError")),
    ("no connection", (ConnectionError,), (
        "EndpointConnection", "Cannot connect", "ConnectTimeout", "ConnectionError", "SSLError",
        "ClientConnector", "Name or service",
    )),
)  # fmt: skip
#: Names and addresses say nothing of what went wrong, and may hold any number.
_PATH = re.compile(r"\S*/\S*")


def words(error: BaseException) -> str:
    """`access denied: AccessDenied: ...`"""
    told = masked(": ".join(_said(error)))
    looked_at = _PATH.sub("", told)
    for begin, types, pieces in _KINDS:
        if isinstance(error, types) or any(one in looked_at for one in pieces):
            return f"{begin}: {told}"
    return f"failed: {told}"


def _said(error: BaseException) -> Iterator[str]:
    """The code of S3's answer, where there is one, else the type; and the text."""
    response = getattr(error.__cause__, "response", None) or getattr(error, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    yield str(code or type(error).__name__)
    if str(error):
        yield str(error)
