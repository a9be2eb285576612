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

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import HindflightError
from toolkit.version import hindflight_version

if TYPE_CHECKING:
    from replay.controller import Controller
    from replay.controller_check import check_controller
    from reports import charts
    from toolkit.source import Tables

__all__ = ["Controller", "HindflightError", "__version__", "charts", "check_controller", "open", "replay", "report"]

__version__ = hindflight_version()


def open(path: Path | str) -> Tables:  # noqa: A001 - hf.open reads as it should
    """Open a capture or a workspace; see `toolkit.source.Tables` for what comes back.

    CaptureError, WorkspaceError: it is neither, or is damaged. MachineError: disk, permission or memory.
    """
    from toolkit.source import open_source

    return open_source(path)


def replay(
    scenario: Path | str, *captures: Path | str, threads: int | None = None, pcap: Path | str | None = None
) -> Tables:
    """Replay a scenario file and return its tables; see `hindflight.steps.replay_file`.

    `captures` are captures and kernel logs to read first: the self-check needs the one that the scenario came from.
    With `pcap`, a folder, captures of the recorded runs are written there.
    ScenarioError, CaptureError, ChannelError: an input is wrong. MachineError: disk, permission or memory.
    """
    from hindflight.steps import replay_file

    return replay_file(scenario, *captures, threads=threads, pcap=pcap)


def report(tables: Tables, path: Path | str, *, title: str = "", utc: bool = False) -> None:
    """Write the report on `tables` to one HTML file; `utc` shows times of day, not seconds.

    Variants of one's own stand beside the others: the command line does not know them.
    ReportError: there is nothing to tell. MachineError: the file cannot be written.
    """
    from hindflight.steps import write_report_of

    write_report_of(tables.workspace, Path(path), title or "Hindflight report", utc)


def __getattr__(name: str) -> Any:
    if name == "charts":
        return import_module("reports.charts")
    if name == "Controller":
        return import_module("replay.controller").Controller
    if name == "check_controller":
        return import_module("replay.controller_check").check_controller
    raise AttributeError(f"module 'hindflight' has no attribute {name!r}")
