"""Hindflight from Python: open a capture or a workspace and get its tables.

    import hindflight as hf

    tables = hf.open("flight.pcap")
    tables.flows.collect()                    # Polars
    tables.arrow("instruments")               # pyarrow, with units
    tables.sql("SELECT * FROM events")        # DuckDB

Everything here is defined elsewhere; nothing heavy is imported before it is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import HindflightError
from toolkit.version import hindflight_version

if TYPE_CHECKING:
    from toolkit.source import Tables

__all__ = ["HindflightError", "__version__", "open"]

__version__ = hindflight_version()


def open(path: Path | str) -> Tables:  # noqa: A001 - hf.open reads as it should
    """Open a capture or a workspace; see `toolkit.source.Tables` for what comes back.

    CaptureError, WorkspaceError: it is neither, or is damaged. MachineError: disk, permission or memory.
    """
    from toolkit.source import open_source

    return open_source(path)
