"""Exports the packets, graphs or tables of a capture, workspace or scenario in the format of another tool.

Decides which files are written and that each is whole; toolkit/export writes their contents. Read docs/export.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hindflight.toolkit.errors import HindflightError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.toolkit.export.anonymize import Anonymizer
    from hindflight.toolkit.export.chosen import Chosen
    from hindflight.toolkit.workspace import Workspace

FORMATS = {
    "pcapng": "packets with a comment of the analysis on each, one file",
    "xpl": "tcptrace's six graphs of each connection for xplot, a folder",
    "csv": "a folder with a file per table, or one file with --table",
    "jsonl": "JSON lines, a folder with a file per table, or one file with --table",
    "parquet": "a folder with a file per table, or one file with --table",
    "sqlite": "one database",
    "web100": "the states of one sender as a snaplog, one file",
}
_OF_TABLES = ("csv", "jsonl", "parquet")
_KEY_NAME = "hindflight-anonymize.key"


@dataclass(frozen=True, slots=True)
class Request:
    """What to export and how: `run` is a replay run, 0 the capture, None the only one (pcapng, xpl) or all (tables).

    `flow` is one connection, `table` one table. With `anonymize` addresses are mapped by the key in the file `key`, by
    default `hindflight-anonymize.key` next to the output, which is made if it does not exist. With `at_sender` a
    capture at the receiver becomes one at its sender (docs/sender-view.md).
    """

    format: str
    flow: int | None = None
    run: int | None = None
    table: str = ""
    anonymize: bool = False
    key: Path | None = None
    at_sender: bool = False
    force: bool = False


def export_source(source: Path, out: Path, request: Request) -> list[Path]:
    """Export `source` (capture, workspace or scenario) to `out`; return the files written, a new key last.

    Nothing is at `out` until all is written. HindflightError: an unknown format, run, flow or table, an output that may
    not be replaced, or a source without what is asked for. ScenarioError, CaptureError, WorkspaceError: the source.
    """
    from hindflight.toolkit.files import check_outputs
    from hindflight.toolkit.source import files_of, open_source

    _check(source, out, request)
    if source.suffix == ".toml":
        return _export_scenario(source, out, request)
    check_outputs(
        [] if out.is_dir() else [out], files_of(source), force=request.force, may_be_equal=not _sealed(request)
    )
    with _anonymizer(request, out) as (anonymizer, made), open_source(source, _needed(request)) as tables:
        if request.at_sender:
            return _write_at_sender(tables.workspace, out, request)
        chosen = _chosen(tables.workspace, request, anonymizer)
        return [*_write(chosen, out, request), *made]


def _check_at_sender(source: Path, request: Request) -> None:
    causes = {
        "a scenario": source.suffix == ".toml",
        f"--format {request.format}": request.format != "pcapng",
        "--anonymize": request.anonymize,
        f"--run {request.run}": bool(request.run),
    }
    for cause, given in causes.items():
        if given:
            hint = "export to pcapng first, then export that file" if request.anonymize else "leave out one of them"
            raise HindflightError(f"--at-sender rebuilds a capture as pcapng, which does not go with {cause}", hint)


def _write_at_sender(workspace: Workspace, out: Path, request: Request) -> list[Path]:
    from hindflight.toolkit.captured_flow import read_flow
    from hindflight.toolkit.sender_view.write import RECEIVER, write_sender_view

    flow = read_flow(workspace, request.flow)
    if flow.row["vantage"] != RECEIVER:
        where = {"sender": "was captured at its sender", "middle": "was captured between its ends"}.get(
            str(flow.row["vantage"]), "does not show where it was captured, as if in one direction only"
        )
        raise HindflightError(
            f"flow {flow.number} {where}; --at-sender is for captures at the receiver", "leave it out"
        )
    write_sender_view(workspace, flow, out, force=request.force)
    return [out]


def _sealed(request: Request) -> bool:
    """Whether the format has a place for a seal. Other files are replaced only by the same content."""
    return request.format in ("pcapng", "parquet")


def _check(source: Path, out: Path, request: Request) -> None:
    from hindflight.toolkit.workspace import check_table

    if request.format not in FORMATS:
        guess = did_you_mean(request.format, FORMATS)
        raise HindflightError(f"there is no format {request.format!r}", guess or f"formats: {', '.join(FORMATS)}")
    if request.table:
        check_table(request.table)
        if request.format not in _OF_TABLES:
            raise HindflightError(f"--table is for {', '.join(_OF_TABLES)}", "leave it out")
    if request.key is not None and not request.anonymize:
        raise HindflightError("--key without --anonymize does nothing", "add --anonymize, or leave the key out")
    if request.at_sender:
        _check_at_sender(source, request)
    if out.is_dir() and not _is_folder(request) and source.suffix != ".toml":
        name = out / f"flight.{request.format}"
        raise HindflightError(f"{out} is a folder; {request.format} is one file", f"as in -o {name}")


def _is_folder(request: Request) -> bool:
    return request.format == "xpl" or (request.format in _OF_TABLES and not request.table)


def _needed(request: Request) -> tuple[str, ...] | None:
    """The tables of a capture that are exported."""
    if request.format == "pcapng":
        return ("segments", "flows", "events", "instruments")
    if request.format == "xpl":
        return ("segments", "flows")
    if request.format == "web100":
        return ("flows", "instruments")
    return ("flows", request.table) if request.table else None


@contextmanager
def _anonymizer(request: Request, out: Path) -> Iterator[tuple[Anonymizer | None, list[Path]]]:
    """Give what maps addresses, and the file of the key if it was made now; it goes if the block fails."""
    from hindflight.toolkit.export.anonymize import Anonymizer, read_or_make_key

    if not request.anonymize:
        yield None, []
        return
    path = request.key or out.parent / _KEY_NAME
    key, made = read_or_make_key(path)
    try:
        yield Anonymizer(key), [path] if made else []
    except BaseException:
        if made:
            path.unlink(missing_ok=True)
        raise


def _chosen(workspace: Workspace, request: Request, anonymizer: Anonymizer | None) -> Chosen:
    """Find the run and the flow. Packets and graphs are of one run: the capture, or else the first that is recorded."""
    from hindflight.toolkit.export.chosen import Chosen

    run = request.run
    if run is None and request.format in ("pcapng", "xpl", "web100"):
        of = "instruments" if request.format == "web100" else "segments"
        recorded = set(workspace.table(of, ["run_id"])["run_id"].unique().to_pylist())
        run = min(recorded, default=0)
    flows = workspace.table("flows", ["run_id", "flow_id"]).to_pylist()
    known = {row["flow_id"] for row in flows if run is None or row["run_id"] == run}
    if request.run is not None and not known:
        raise HindflightError(
            f"there is no run {request.run} with flows", "`hindflight flows SOURCE --run N` lists them"
        )
    if request.flow is not None and request.flow not in known:
        raise HindflightError(f"there is no flow {request.flow}", "`hindflight flows SOURCE` lists them")
    if run is not None and not known:
        raise HindflightError("there is no TCP connection to export", "`hindflight info SOURCE` says what there is")
    return Chosen(workspace, run, None if request.flow is None else (request.flow,), anonymizer)


def _write(chosen: Chosen, out: Path, request: Request) -> list[Path]:
    from hindflight.toolkit.export.packets import write_pcapng
    from hindflight.toolkit.export.tables import write_sqlite
    from hindflight.toolkit.export.web100 import write_web100
    from hindflight.toolkit.files import whole_file

    if request.format == "xpl":
        return _write_graphs(chosen, out, request)
    if request.format in _OF_TABLES:
        return _write_tables(chosen, out, request)
    with whole_file(out, force=request.force) as temporary:
        if request.format == "pcapng":
            write_pcapng(chosen, temporary)
        elif request.format == "web100":
            write_web100(chosen, temporary)
        else:
            write_sqlite(_tables(chosen, request), temporary)
    return [out]


def _tables(chosen: Chosen, request: Request) -> dict[str, Iterator[pa.Table]]:
    """The tables to write, each as batches that are read when they are written."""
    from hindflight.toolkit.schema import TABLES

    names = [request.table] if request.table else [name for name in TABLES if chosen.has_rows(name)]
    return {name: chosen.batches(name) for name in names}


def _write_tables(chosen: Chosen, out: Path, request: Request) -> list[Path]:
    from hindflight.toolkit.export.tables import write_csv, write_jsonl, write_parquet
    from hindflight.toolkit.files import whole_file

    write = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}[request.format]
    tables = _tables(chosen, request)
    if request.table:
        with whole_file(out, force=request.force) as temporary:
            write(tables[request.table], temporary)
        return [out]
    with _whole_files(out, [f"{name}.{request.format}" for name in tables], request) as folder:
        for name, rows in tables.items():
            write(rows, folder / f"{name}.{request.format}")
    return [out / f"{name}.{request.format}" for name in tables]


def _write_graphs(chosen: Chosen, out: Path, request: Request) -> list[Path]:
    """Write FLOW-DIRECTION-GRAPH.xpl, and FLOW-timeline.xpl; behind a proxy FLOW has the leg too, as in 1.1."""
    from hindflight.toolkit.export.connections import connections

    drawables = connections(chosen)
    names = [name for drawable in drawables for name in drawable.files()]
    with _whole_files(out, names, request) as folder:
        for drawable in drawables:
            for name, plot in drawable.plots():
                plot.write(folder / name)
    return [out / name for name in names]


@contextmanager
def _whole_files(out: Path, names: list[str], request: Request) -> Iterator[Path]:
    """Give a folder for files that move into `out` together at the end of the block, if each may be written there."""
    import shutil
    import tempfile

    from hindflight.toolkit.files import check_outputs, check_replaceable_by, plain_os_errors, sync_folder

    outputs = [out / name for name in names]
    check_outputs(outputs, (), force=request.force, may_be_equal=not _sealed(request))
    with plain_os_errors(f"writing {out}"):
        existed = out.exists()
        out.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".export-", dir=out))
        try:
            yield folder
            for name in names:  # All of them before the first is replaced.
                check_replaceable_by(folder / name, out / name, force=request.force)
            for name in names:
                (folder / name).replace(out / name)
            sync_folder(out)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if not existed and not any(out.iterdir()):
                out.rmdir()


def _export_scenario(source: Path, out: Path, request: Request) -> list[Path]:
    """Replay a scenario and export a capture of each node of each recorded run to the folder `out`."""
    from tempfile import TemporaryDirectory

    from hindflight.replay.experiment.experiment import Execution
    from hindflight.toolkit.files import plain_os_errors
    from hindflight.toolkit.source import open_source, temporary_tables
    from hindflight.workflow import read_scenario, replay_into

    if request.format != "pcapng":
        raise HindflightError(
            "a scenario is exported as pcapng, a file per node", "replay it into a workspace and export that"
        )
    if request.flow is not None or request.run is not None:
        raise HindflightError("--flow and --run are for captures and workspaces", "leave them out")
    scenario = read_scenario(source)
    with (
        _anonymizer(request, out) as (anonymizer, made),
        plain_os_errors("making a temporary folder"),
        TemporaryDirectory() as scratch,
    ):
        captures = Path(scratch)
        with temporary_tables() as tables:
            result = replay_into(
                tables.workspace, scenario, source.parent, "export", Execution(None, captures=captures)
            )
        names = [f"{path.stem}.pcapng" for path in result.captures]
        with _whole_files(out, names, request) as folder:
            for path, name in zip(result.captures, names, strict=True):
                with open_source(path, _needed(request)) as opened:
                    _write(_chosen(opened.workspace, request, anonymizer), folder / name, request)
        return [*(out / name for name in names), *made]
