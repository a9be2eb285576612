"""Rows of a capture counted as another program counts: `flows` as tcptrace, `segments` as Wireshark.

docs/parity.md describes the fields. The native reader counts; here is which profile belongs to which command.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hindflight.toolkit.capture import TcptraceStream, TextStream, WiresharkStream
from hindflight.toolkit.errors import HindflightError

if TYPE_CHECKING:
    import polars as pl

PROFILES = {"flows": "tcptrace", "segments": "wireshark"}
"""The profile that each command knows."""


def open_profile(
    source: Path, table: str, profile: str, *, json: bool, limits: tuple[int | None, int | None] = (None, None)
) -> TextStream:
    """Open the capture `source` for `profile`; `limits` in ns since 1970 are for flows.

    HindflightError: an unknown profile, or a folder. CaptureError: not a capture that can be read.
    """
    known = PROFILES[table]
    if profile != known:
        raise HindflightError(f"--profile {profile} is not known", f"there is {known}")
    if source.is_dir():
        raise HindflightError(f"--profile needs a capture; {source} is a folder", "give the file with the packets")
    if table == "segments":
        return WiresharkStream(source, json=json)
    return TcptraceStream(source, json=json, from_ns=limits[0], to_ns=limits[1])


def profile_frame(source: Path, table: str, profile: str) -> pl.DataFrame:
    """Return the rows of a profile with the names that the other program gives its fields; errors as above."""
    import polars as pl

    text = b"".join(open_profile(source, table, profile, json=False).text())
    return pl.read_csv(text, null_values=["NA", ""], infer_schema_length=None)
