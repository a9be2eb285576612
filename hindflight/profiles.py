"""Rows of a capture counted as another program counts: `flows` as tcptrace, `segments` as Wireshark.

docs/parity.md describes the fields. The native reader counts; here is which profile belongs to which command.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hindflight.toolkit.capture import TcptraceStream, TextStream, WiresharkStream
from hindflight.toolkit.errors import HindflightError

if TYPE_CHECKING:
    import polars as pl

PROFILES = {"flows": "tcptrace", "segments": "wireshark"}
"""The profile that each command knows."""


def open_profile(
    sources: Sequence[Path],
    table: str,
    profile: str,
    *,
    json: bool,
    limits: tuple[int | None, int | None] = (None, None),
) -> TextStream:
    """Open a capture for `profile`, of one file or several merged in the order of time; `limits` in ns are for flows.

    HindflightError: an unknown profile, or a folder. CaptureError: not a capture that can be read, or be merged.
    """
    known = PROFILES[table]
    if profile != known:
        raise HindflightError(f"--profile {profile} is not known", f"there is {known}")
    folder = next((source for source in sources if source.is_dir()), None)
    if folder is not None:
        raise HindflightError(f"--profile needs a capture; {folder} is a folder", "give the file with the packets")
    if table == "segments":
        return WiresharkStream(sources, json=json)
    return TcptraceStream(sources, json=json, from_ns=limits[0], to_ns=limits[1])


def profile_frame(sources: Sequence[Path], table: str, profile: str) -> pl.DataFrame:
    """Return the rows of a profile with the names that the other program gives its fields; errors as above."""
    import polars as pl

    text = b"".join(open_profile(sources, table, profile, json=False).text())
    return pl.read_csv(text, null_values=["NA", ""], infer_schema_length=None)
