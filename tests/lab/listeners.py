"""Servers that are not quite SSH. Runs alone inside the lab: `python listeners.py READY_FILE`."""

from __future__ import annotations

import selectors
import socket
import sys
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
                connection.settimeout(1)
                if text and close:
                    connection.recv(1024)  # unread bytes would make the end a reset
                connection.sendall(text)
                if close:
                    connection.close()
                else:
                    kept.append(connection)


if __name__ == "__main__":
    main()
