"""What lies in a checkpoint's files, as the scan told it: no verdicts. Sizes in bytes."""

from __future__ import annotations

from msgspec import Struct, field


class Tensor(Struct, frozen=True):
    """One tensor; of a distributed checkpoint the whole. Counts are of the values that its storage
    holds, of which `looked_at` were looked at; dtypes by torch's names without `torch.`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    file: str  # relative to what was given
    offset: int | None = None  # of its storage in the file
    count: int = 0
    looked_at: int = 0
    nans: int = 0
    infs: int = 0
    largest: float | None = None  # absolute, of what is finite
    damage: str = ""  # what is wrong with its bytes


class Flaw(Struct, frozen=True):
    """Something in a file that is not as its format asks. `kind`: a row of
    checks/data/checkpoint_flaws.yaml."""

    kind: str
    text: str
    offset: int | None = None


class ScannedFile(Struct, frozen=True):
    """One file. `checksum`: none (the format has none) | verified | off (written without) | failed
    | not-looked (left out to save time)."""

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
    #: What else it says: keys of a JSON document, the text of a tracker, where a link leads.
    told: dict[str, str] = field(default_factory=dict)


class Scan(Struct):
    """All files below a path, on one host."""

    source: str  # the path given
    host: str = ""
    root: str = ""  # the folder that paths of files are relative to
    files: tuple[ScannedFile, ...] = ()
    tensors: tuple[Tensor, ...] = ()
    folders: tuple[str, ...] = ()
    total_bytes: int = 0
    now_s: float = 0.0  # by the host's clock, when the scan began
    values: bool = True  # whether numbers were looked at
    every: int = 1  # of large tensors one block in so many was read
    values_every: int = 1  # and one in so many of those looked at for its values
    way: str = ""  # by which: numpy, torch, Python
    trouble: str = ""  # why it ended before it was through, or what could not be looked at
    absent: bool = False  # there is no such path
    whole: bool = False  # it came to its end
    elapsed_s: float = 0.0
