"""Servers that are not quite SSH. Runs alone inside the lab: `python listeners.py READY_FILE`."""

from __future__ import annotations

import selectors
import socket
import sys
from contextlib import suppress
from pathlib import Path

SILENT, STUCK, CLOSING, HTTP = 2023, 2024, 2025, 2080
#: What is said to whoever connects, and whether the connection is closed then.
SAID = {
    STUCK: (b"SSH-2.0-OpenSSH_9.2\r\n", False),
    CLOSING: (b"", True),
    HTTP: (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", True),
}


def main() -> None:
    kept = [socket.create_server(("", SILENT), backlog=256)]  # the kernel takes the connections
    with selectors.DefaultSelector() as selector:
        for port in SAID:
            selector.register(socket.create_server(("", port)), selectors.EVENT_READ, port)
        Path(sys.argv[1]).touch()
        while True:
            for key, _ in selector.select():
                assert isinstance(key.fileobj, socket.socket)
                connection, _ = key.fileobj.accept()
                text, close = SAID[key.data]
                if close:
                    leave(connection, text)
                else:
                    connection.sendall(text)
                    kept.append(connection)


def leave(connection: socket.socket, text: bytes) -> None:
    """Say the text and close. What the other said is read before: unread, it would be a reset."""
    with connection, suppress(OSError):
        connection.settimeout(0.5)
        if text:
            with suppress(TimeoutError):
                connection.recv(1024)
        connection.sendall(text)


if __name__ == "__main__":
    main()
