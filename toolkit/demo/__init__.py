"""The capture that ships with the package, with the sender's TCP_INFO (README.md says how it was made)."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

CAPTURE = "geo-burst-loss.pcap.xz"
TCP_INFO = "geo-burst-loss.tcpinfo.csv.xz"


def demo_file(name: str) -> AbstractContextManager[Path]:
    """Give one of the files above as a path on disk for the duration of a `with`."""
    return as_file(files(__name__).joinpath(name))
