"""What lies in a checkpoint's files, as the scan told it: no verdicts. Sizes in bytes."""

from __future__ import annotations

from msgspec import Struct, field


class Tensor(Struct, frozen=True):
    """One tensor, or one piece of it. Counts are of what was looked at (`looked_at` of `count`
    values); dtypes by torch's names without `torch.`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    file: str  # relative to the checkpoint
    piece_of: tuple[int, ...] = ()  # the shape of the whole, where this is a piece
    offsets: tuple[int, ...] = ()  # where in it the piece lies
    count: int = 0
    looked_at: int = 0
    nans: int = 0
    infs: int = 0
    largest: float | None = None  # absolute, of what is finite


class Flaw(Struct, frozen=True):
    """Something in a file that is not as its format asks. `kind`: truncated, crc, zero-pages,
    not-covered, overlap, hole, size, header, pickle, missing-member, hostile, lfs-pointer,
    html, empty, unreadable ..."""

    kind: str
    text: str
    offset: int | None = None


class ScannedFile(Struct, frozen=True):
    """One file. `checksum`: none (the format has none) | verified | off (written without) |
    failed | not-looked (left out to save time)."""

    path: str  # relative to what was given
    size: int
    kind: str  # torch-zip | torch-legacy | safetensors | distcp | dcp-metadata | json | text | ...
    modified_s: float = 0.0
    checked_bytes: int = 0
    checksum: str = "none"
    flaws: tuple[Flaw, ...] = ()
    globals: tuple[str, ...] = ()  # that its pickles name
    tensors: int = 0
    #: Keys of the outermost dict, with what stands there: tensor, dict of n, int 100, str ...
    top: dict[str, str] = field(default_factory=dict)
    #: What else it says: step, the file names that an index lists, the text of a tracker.
    told: dict[str, str] = field(default_factory=dict)
    links_to: str = ""  # of a symbolic link


class Scan(Struct):
    """All files below a path, on one host."""

    source: str  # the path given
    host: str = ""
    files: tuple[ScannedFile, ...] = ()
    tensors: tuple[Tensor, ...] = ()
    folders: tuple[str, ...] = ()
    total_bytes: int = 0
    checked_bytes: int = 0
    sampled: bool = False
    trouble: str = ""  # why it ended before it was through
    elapsed_s: float = 0.0
