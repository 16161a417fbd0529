"""What `srun --label` prints, parted by task again, byte for byte.

srun puts the task's number before each line. A line of more than 1024 bytes it is sent in pieces of
that size (MAX_MSG_LEN in Slurm's src/common/io_hdr.h), and it ends each piece with a newline that
nobody wrote. A line that ends by itself has at most 1023 bytes before its newline, so a piece of
exactly 1024 is one that goes on. Seen with Slurm 22.05.

This holds as long as a task has not ended: what is not yet sent then goes in pieces of 1024 bytes
whatever lines they hold, and a line that is parted there cannot be told from two (seen where srun
was not read for seconds). So whoever asks keeps the tasks waiting for more input until all that
they said has come. Of a task that is killed the last lines are as srun has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: Bytes of a line after which srun begins another.
PIECE_BYTES = 1024

_LABEL = re.compile(rb" *(\d{1,9}): ")


class Labelled:
    """One stream of srun's. `feed` takes its bytes as they come."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, data: bytes) -> Iterator[tuple[int | None, bytes]]:
        """(task, bytes) in the order they came, each task's together; the task is None for lines
        of srun itself."""
        lines = (self._pending + data).split(b"\n")
        self._pending = lines.pop()
        parted: dict[int | None, list[bytes]] = {}
        for line in lines:
            label = _LABEL.match(line)
            if label is None:
                parted.setdefault(None, []).append(line + b"\n")
                continue
            said = line[label.end() :]
            whole = said if len(said) == PIECE_BYTES else said + b"\n"
            parted.setdefault(int(label[1]), []).append(whole)
        for task, pieces in parted.items():
            yield task, b"".join(pieces)
