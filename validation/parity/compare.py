"""What both comparisons share: differences, the kinds that explain them, and what is known of a capture."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hindflight.toolkit.capture import Capture

SUFFIXES = (".pcap", ".pcapng", ".dmp", ".dump", ".cap")
COMPRESSED = (".gz", ".xz", ".bz2")


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that differs: where, both values, and the kind that explains it (empty: none does)."""

    capture: str
    place: str
    field: str
    peer: str
    ours: str
    kind: str


@dataclass(slots=True)
class Outcome:
    """The comparison of one capture with one peer; `damaged` if time stamps of the file are invalid."""

    capture: str
    damaged: bool = False
    compared: int = 0
    differences: list[Difference] = field(default_factory=list)
    only_peer: int = 0
    only_ours: int = 0

    @property
    def unexplained(self) -> list[Difference]:
        """The differences without a kind."""
        return [one for one in self.differences if not one.kind]


@dataclass
class Facts:
    """What the rules may ask about a capture."""

    path: Path

    @cached_property
    def capture(self) -> Capture:
        """Its tables."""
        from hindflight.toolkit.capture import load_capture

        return load_capture(self.path)

    @cached_property
    def issue_kinds(self) -> Counter[str]:
        """How many issues of each kind it has."""
        return Counter(self.capture.issues["kind"].to_pylist())

    @cached_property
    def payload_bytes(self) -> Mapping[str, int]:
        """Payload of each record according to the IP header."""
        rows = self.capture.segments.select(["record", "payload_bytes"]).to_pylist()
        return {str(row["record"]): row["payload_bytes"] for row in rows}

    @cached_property
    def ports(self) -> set[int]:
        """All ports."""
        flows = self.capture.flows
        return {*flows["a_port"].to_pylist(), *flows["b_port"].to_pylist()}


def captures(paths: list[Path]) -> list[Path]:
    """Return the captures among `paths` and below its folders, in the order of their names."""
    found = []
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [file for file in files if not path.is_dir() or _is_capture(file)]
    return found


def _is_capture(path: Path) -> bool:
    name = path.with_suffix("") if path.suffix in COMPRESSED else path
    return path.is_file() and name.suffix in SUFFIXES


def shown(path: Path) -> str:
    """Return the name of a capture with its folder."""
    return f"{path.parent.name}/{path.name}"


@contextmanager
def plain(path: Path) -> Iterator[Path]:
    """Give `path` without compression: the peers read not all of them."""
    if path.suffix not in COMPRESSED:
        yield path
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder, "capture")
        with _opened(path) as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target)
        yield copy


def _opened(path: Path) -> gzip.GzipFile | lzma.LZMAFile | bz2.BZ2File:
    match path.suffix:
        case ".gz":
            return gzip.open(path)
        case ".xz":
            return lzma.open(path)
        case _:
            return bz2.open(path)


def run(*words: str) -> list[str]:
    """Return the lines that a peer prints; it may print them and fail, at damaged input."""
    done = subprocess.run(words, capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace").splitlines()
