"""Hindflight from Python: open a capture or a workspace and get its tables.

    import hindflight as hf

    tables = hf.open("flight.pcap")
    tables.flows.collect()                    # Polars
    tables.arrow("instruments")               # pyarrow, with units
    tables.sql("SELECT * FROM events")        # DuckDB
    hf.charts.cwnd(tables, hf.charts.View(flow_id=1))       # Altair

    what_if = hf.replay("scenario.toml", "flight.pcap")     # the same tables again, with runs and findings
    hf.charts.what_if_goodput(what_if)
    hf.report(what_if, "what_if.html")

    class Gentle(hf.Controller, variant="gentle"):          # a variant of one's own, for `compare.variants`
        ...
    hf.check_controller(Gentle)                             # the rules that every variant keeps

Everything here is defined elsewhere; nothing heavy is imported before it is used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hindflight.replay.controllers.base import Controller
    from hindflight.replay.controllers.check import check_controller
    from hindflight.reports import charts
    from hindflight.toolkit.errors import HindflightError
    from hindflight.toolkit.source import Tables

    __version__: str

__all__ = ["Controller", "HindflightError", "__version__", "charts", "check_controller", "open", "replay", "report"]

_DEFINED_IN = {
    "Controller": "hindflight.replay.controllers.base",
    "HindflightError": "hindflight.toolkit.errors",
    "check_controller": "hindflight.replay.controllers.check",
}
"""Module of each public name that is imported when it is first used."""


def open(path: Path | str) -> Tables:  # noqa: A001 - hf.open reads as it should
    """Open a capture or a workspace; see `hindflight.toolkit.source.Tables` for what comes back.

    CaptureError, WorkspaceError: it is neither, or is damaged. MachineError: disk, permission or memory.
    """
    from hindflight.toolkit.source import open_source

    return open_source(path)


def replay(
    scenario: Path | str, *captures: Path | str, threads: int | None = None, pcap: Path | str | None = None
) -> Tables:
    """Replay a scenario file and return its tables; see `hindflight.workflow.replay_file`.

    `captures` are captures and kernel logs to read first: the self-check needs the one that the scenario came from.
    With `pcap`, a folder, captures of the recorded runs are written there.
    ScenarioError, CaptureError, ChannelError: an input is wrong. MachineError: disk, permission or memory.
    """
    from hindflight.workflow import replay_file

    return replay_file(scenario, *captures, threads=threads, pcap=pcap)


def report(tables: Tables, path: Path | str, *, title: str = "", utc: bool = False) -> None:
    """Write the report on `tables` to one HTML file; `utc` shows times of day, not seconds.

    Variants of one's own stand beside the others: the command line does not know them.
    ReportError: there is nothing to tell. MachineError: the file cannot be written.
    """
    from hindflight.workflow import write_report_of

    write_report_of(tables.workspace, Path(path), title or "Hindflight report", utc)


def __getattr__(name: str) -> Any:
    if name == "charts":
        return import_module("hindflight.reports.charts")
    if name == "__version__":
        return import_module("hindflight.toolkit.version").hindflight_version()
    if name in _DEFINED_IN:
        return getattr(import_module(_DEFINED_IN[name]), name)
    raise AttributeError(f"module 'hindflight' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _ReplayPackage(ModuleType):
    """The package `hindflight.replay`, which is also the function `hindflight.replay`."""

    __call__ = staticmethod(replay)


class _Hindflight(ModuleType):
    """This module; `hf.replay` can still be called after the import system has bound the package of the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "replay" and isinstance(value, ModuleType):
            value.__class__ = _ReplayPackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Hindflight
