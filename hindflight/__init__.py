"""Hindflight from Python: open a capture or a workspace and get its tables.

    import hindflight as hf

    tables = hf.open("flight.pcap")
    tables.flows.collect()                    # Polars
    tables.arrow("instruments")               # pyarrow, with units
    tables.sql("SELECT * FROM events")        # DuckDB
    hf.charts.cwnd(tables, hf.charts.View(flow_id=1))       # Altair
    hf.segments("flight.pcap", flow=1, where="retransmission")      # Polars

    what_if = hf.whatif("flight.pcap", variants=["cubic", "bbr"])     # the same tables again, with runs and findings
    hf.charts.what_if_goodput(what_if)
    hf.report(what_if, "what_if.html")

    hf.batch("flights/", out="studies").studies             # the same for every capture of a folder
    hf.verdicts("flight.pcap", flow=1).verdicts             # what happened, packet by packet, with evidence
    hf.compare("before.pcap", "after.pcap").changes         # what changed, with 95 % intervals

    hf.fit(hf.synth("bernoulli", per=0.01), "bernoulli")    # a channel generated, and a model fitted to its losses
    hf.write_channel(hf.read_channel("up.csv"), "up.pps")   # another format

    hf.extract_channel("flight.pcap").estimates             # rate, delay and queue with their 95 % intervals
    hf.draft_scenario("flight.pcap", "scenario.toml")       # a scenario to edit
    hf.replay("scenario.toml", "flight.pcap")
    hf.place("scenario.toml").best                          # where a split proxy helps
    hf.presets("pepsal")                                    # the keys of a split proxy as papers and programs have it
    hf.reproduce("haps-split").claims                       # a published study, each of its claims judged

    class Gentle(hf.Controller, variant="gentle"):          # a custom variant, for `compare.variants`
        ...
    hf.check_controller(Gentle)                             # the rules that every variant keeps

Everything here is defined elsewhere; nothing heavy is imported before it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Unpack

if TYPE_CHECKING:
    import polars as pl

    from hindflight.batches import Batch
    from hindflight.channels.fitting.fit import Fits
    from hindflight.channels.fitting.statistics import Statistic
    from hindflight.channels.models.reference import ModelReference
    from hindflight.channels.trace import Trace
    from hindflight.comparison import Comparison
    from hindflight.flow_verdicts import Verdicts
    from hindflight.replay.catalogue import Variant
    from hindflight.replay.controllers.base import Controller
    from hindflight.replay.controllers.check import check_controller
    from hindflight.replay.experiment.place import Search
    from hindflight.replay.experiment.sensitivity import Sensitivity
    from hindflight.replay.scenario.limits import Limits
    from hindflight.replay.scenario.presets import Preset
    from hindflight.reports import charts
    from hindflight.reproduction import Reproduction
    from hindflight.selection import Conditions, Source
    from hindflight.toolkit.errors import HindflightError
    from hindflight.toolkit.score import Score
    from hindflight.toolkit.source import Tables

    __version__: str

__all__ = [
    "Controller",
    "HindflightError",
    "Tables",
    "Trace",
    "__version__",
    "batch",
    "channel_statistics",
    "charts",
    "check_controller",
    "compare",
    "draft_scenario",
    "events",
    "export",
    "extract_channel",
    "fit",
    "flows",
    "info",
    "limits",
    "models",
    "open",
    "pair",
    "place",
    "presets",
    "read_channel",
    "replay",
    "report",
    "reproduce",
    "score",
    "segments",
    "sensitivity",
    "synth",
    "variants",
    "verdicts",
    "whatif",
    "write_channel",
]

_DEFINED_IN = {
    "Controller": "hindflight.replay.controllers.base",
    "HindflightError": "hindflight.toolkit.errors",
    "Tables": "hindflight.toolkit.source",
    "Trace": "hindflight.channels.trace",
    "check_controller": "hindflight.replay.controllers.check",
}
"""Module of each public name that is imported when it is first used."""


def open(path: Source, *, fix_clock: bool = False) -> Tables:  # noqa: A001 - hf.open reads as it should
    """Open a capture or a workspace; see `hindflight.toolkit.source.Tables` for what comes back.

    Several paths are the files of one capture, merged in the order of time. `fix_clock` corrects the times of a
    capture whose clock was set, or that has two clocks, as `ingest --fix-clock`.

    CaptureError, WorkspaceError: it is neither, or is damaged. MachineError: disk, permission or memory.
    """
    from hindflight.toolkit.source import open_source

    return open_source(path, fix_clock=fix_clock)


def replay(scenario: Path | str, *captures: Path | str, threads: int | None = None) -> Tables:
    """Replay a scenario file and return its tables; see `hindflight.workflow.replay_file`.

    `captures` are captures and kernel logs to read first: the self-check needs the one that the scenario came from.
    ScenarioError, CaptureError, ChannelError: an input is wrong. MachineError: disk, permission or memory.
    """
    from hindflight.workflow import replay_file

    return replay_file(scenario, *captures, threads=threads)


def whatif(  # noqa: PLR0913 - named ones, each with its default
    capture: Path | str,
    *logs: Path | str,
    flow: int | None = None,
    variants: Sequence[str] = ("newreno", "cubic"),
    proxies: Sequence[str] = ("auto",),
    seeds: int = 40,
    captured_variant: str = "auto",
    threads: int | None = None,
) -> Tables:
    """Replay other TCP variants and a split proxy over the channel of a captured flow, and return all tables.

    `capture` was taken at the data sender; `logs` are kernel logs of it. `flow` is its number, by default the one with
    the most data. `proxies` are chains; "auto" stands for none and for those that may help on the captured path
    (docs/proxies.md). Each variant runs once over the channel as extracted and `seeds` times over resampled ones.
    `runs` holds one row per run (goodput in bit/s, times in ns), `findings` means, 95 % intervals and gains.
    CaptureError, LogError, ChannelError, ScenarioError: an input is wrong. MachineError: disk, permission or memory.
    """
    from hindflight.replay.scenario.from_capture import Choice
    from hindflight.workflow import what_if

    choice = Choice(tuple(variants), tuple(proxies), seeds, captured_variant)
    return what_if(Path(capture), [Path(log) for log in logs], flow, choice, threads)


def place(
    scenario: Path | str,
    *,
    nodes: Sequence[str] = (),
    variants: Sequence[str] = (),
    cache: int = 400,
    proxies: int = 2,
    threads: int | None = None,
) -> Search:
    """Search where split proxies help the flow under test of a scenario file, and return the best placements.

    Tries `nodes` (default: all between the ends), up to `proxies` of them at once, `variants` of the connections onward
    (default: that of the flow) and caches of up to `cache` packets. Goodput and its paired difference from the flow
    without a proxy are in bit/s, with 95 % intervals over the scenario's seeds.
    ScenarioError, ChannelError: an input is wrong. MachineError: it cannot be read.
    """
    from hindflight.replay.experiment.place import Space
    from hindflight.replay.experiment.place import place as search
    from hindflight.workflow import read_scenario

    space = Space(tuple(nodes), tuple(variants), cache, proxies)
    return search(read_scenario(Path(scenario)), Path(scenario).parent, space, threads=threads)


def presets(name: str | None = None) -> tuple[Preset, ...]:
    """Return the presets of split proxies, or the one called `name`: keys of `[[proxy]]` tables, which `text()` writes.

    HindflightError, with the most similar name: there is none of that name.
    """
    from hindflight.replay.scenario.presets import PRESETS, find_preset

    return tuple(PRESETS.values()) if name is None else (find_preset(name),)


def reproduce(
    paper: str,
    *,
    out: Path | str | None = None,
    full: bool = False,
    extra: bool = False,
    threads: int | None = None,
    force: bool = False,
) -> Reproduction:
    """Reproduce a published study, or `all`: `claims` (one row per claim and reading, with its verdict) and `points`.

    Instead of a study, `paper` may list claims, as "000-C29,000-C30": only these are judged. `full` runs all readings
    of the text, and every configuration until its intervals are narrow. With `out` a report per paper, its scenario
    files and claims.json are written to that folder.
    HindflightError: no such paper or claim, or a file that may not be replaced.
    MachineError: disk, permission or memory.
    """
    from hindflight.reproduction import Request, reproduce_papers

    request = Request(paper, full, extra, threads, force)
    return reproduce_papers(request, None if out is None else Path(out))


def limits(source: Path | str, flow: int | None = None) -> Limits:
    """Return what limited the sender of one flow over time: network, receiver, application or pacing, with `shares()`.

    `source` is a capture taken at the data sender, or a workspace; `flow` is its number, by default the one with the
    most data. Times are in ns since 1970-01-01 UTC, packets are numbered as in Wireshark.
    CaptureError, WorkspaceError, HindflightError: it does not show that. MachineError: disk, permission or memory.
    """
    from hindflight.captured_link import sender_limits

    return sender_limits(Path(source), flow)[1]


def verdicts(source: Path | str, flow: int | None = None) -> Verdicts:
    """Return what happened to one flow: vantage, retransmissions, losses, outages, shapes, each with its packets, its
    evidence and the share of such verdicts that were right on recordings whose truth is known.

    `source` is a capture or a workspace; `flow` is its number, by default the one with the most data. Times are in ns
    since 1970-01-01 UTC, packets are numbered as in Wireshark.
    CaptureError, WorkspaceError, HindflightError: an input is wrong. MachineError: disk, permission or memory.
    """
    from hindflight.flow_verdicts import verdicts_on

    return verdicts_on(Path(source), flow)


def batch(  # noqa: PLR0913 - named ones, each with its default
    *captures: Path | str,
    out: Path | str,
    variants: Sequence[str] = ("newreno", "cubic"),
    proxies: Sequence[str] = ("auto",),
    seeds: int = 40,
    captured_variant: str = "auto",
    threads: int | None = None,
    force: bool = False,
) -> Batch:
    """Study many captures as `whatif` does, each into a folder below `out`, and return what became of each.

    `captures` are files, or folders to search. A capture that an earlier call studied is not studied again. A bad
    capture is a failed study of `Batch.studies`, not an error. Call it from a module, under `if __name__ ==
    "__main__":`; every study runs in a process of its own.
    HindflightError: there is no capture. ScenarioError: an unknown variant. MachineError: `out` cannot be written.
    """
    from hindflight.batches import Settings, run_batch
    from hindflight.replay.scenario.from_capture import Choice

    choice = Choice(tuple(variants), tuple(proxies), seeds, captured_variant)
    return run_batch([Path(capture) for capture in captures], Path(out), Settings(choice, threads, force))


def compare(before: Path | str, after: Path | str, *, fail_if: Sequence[str] = ()) -> Comparison:
    """Compare two captures or workspaces; the result has `changes` with 95 % intervals, `verdicts` and `exit_code`.

    The flow with the most data of each is compared by blocks of time, runs that both have by seed. `fail_if` holds
    conditions such as "goodput < -5%", which fire only if the interval excludes the bound.
    CaptureError, WorkspaceError: an input is wrong. HindflightError: a condition is, or there is nothing to compare.
    """
    from hindflight.comparison import compare_sources

    return compare_sources(Path(before), Path(after), fail_if)


def extract_channel(source: Path | str, *, flow: int | None = None, receiver: Path | str | None = None) -> Trace:
    """Extract the channel that one flow of a capture or workspace met: `channel` (Arrow), `estimates`, `unknowns`.

    An estimate has a value and a 95 % interval in its `unit` (bit/s, ns, bytes, packets). `receiver` is a capture of
    the same connection at the data receiver.
    CaptureError, WorkspaceError, ChannelError: an input is wrong, or does not show the channel. MachineError: disk,
    permission or memory.
    """
    from hindflight.workflow import channel_of

    return channel_of(Path(source), flow, None if receiver is None else Path(receiver))


def draft_scenario(  # noqa: PLR0913 - named ones, each with its default
    source: Path | str,
    path: Path | str,
    *,
    flow: int | None = None,
    variants: Sequence[str] = ("newreno", "cubic"),
    proxies: Sequence[str] = ("auto",),
    seeds: int = 40,
    captured_variant: str = "auto",
) -> Path:
    """Write a scenario drafted from one flow of a capture or workspace to `path`; return the path of its loss trace.

    The trace is written next to the scenario. `flow` is by default the one with the most data; see `whatif`.
    CaptureError, WorkspaceError, ChannelError, ScenarioError: an input is wrong. MachineError: disk or permission.
    """
    from hindflight.replay.scenario.from_capture import Choice
    from hindflight.workflow import draft_of

    choice = Choice(tuple(variants), tuple(proxies), seeds, captured_variant)
    return draft_of(Path(source), Path(path), flow, choice)


def pair(*captures: Path | str, asymmetry: str = "") -> Tables:
    """Read captures of the same connections at two or more places, in order from the data sender, and pair them.

    `pairs` has a row per packet with its one-way delay (ns) and fate, `clocks` the offset (ns) and drift (ppm) of each
    capture to the one before. `asymmetry` is the minimum delay there less that back, with its unit ("0 ms": equal).
    CaptureError: an input is wrong, or two captures have no packet in common. MachineError: no room for the tables.
    """
    from hindflight.pairing import pair_files

    return pair_files([Path(capture) for capture in captures], asymmetry)


def report(tables: Tables, path: Path | str, *, title: str = "", utc: bool = False) -> None:
    """Write the report on `tables` to one file; `utc` shows times of day, not seconds.

    The file is HTML, or by its suffix Markdown (.md), PDF (.pdf, needs Chromium) or JSON (.json). Custom variants are
    drawn next to the others; the command line does not know them.
    ReportError: the tables hold nothing to report. MachineError: the file cannot be written.
    """
    from hindflight.workflow import write_report_of

    write_report_of(tables.workspace, Path(path), title or "Hindflight report", utc)


def info(*sources: Path | str, outer: bool = False) -> dict[str, Any]:
    """Return what a capture, workspace, kernel log, scenario, channel or report is, as `hindflight info --json`.

    Its key `kind` says which. Several `sources` are the files of one capture; with `outer`, tunnels stay closed.
    HindflightError: it is none of these, or damaged.
    """
    from hindflight.describe import document_of

    return document_of([Path(source) for source in sources], outer=outer)


def flows(source: Source, *, profile: str = "", **selection: Unpack[Conditions]) -> pl.DataFrame:
    """Return the TCP connections of a capture or workspace, as the table `flows` declares them.

    Several paths are the files of one capture, merged in the order of time. Conditions, by name, are those of
    `hindflight.selection.Selection`; QueryError: `where` is not an expression. With `profile="tcptrace"` (captures
    alone, no conditions) the rows have the fields of tcptrace, in its units.
    """
    return _rows_of(source, "flows", profile, selection)


def segments(source: Source, *, profile: str = "", **selection: Unpack[Conditions]) -> pl.DataFrame:
    """Return the TCP segments of a capture or workspace in the order of the capture; conditions as for `flows`.

    `record` is the number that Wireshark shows. With `profile="wireshark"` (captures alone, no conditions) the rows
    have the fields of Wireshark's analysis, in its units.
    """
    return _rows_of(source, "segments", profile, selection)


def events(source: Source, **selection: Unpack[Conditions]) -> pl.DataFrame:
    """Return losses, retransmissions and the other events in order of time; conditions as for `flows`."""
    return _rows_of(source, "events", "", selection)


def export(  # noqa: PLR0913 - named ones, each with its default
    source: Path | str,
    path: Path | str,
    *,
    format: str,  # noqa: A002 - as the option is called
    flow: int | None = None,
    run: int | None = None,
    table: str = "",
    anonymize: bool = False,
    key: Path | str | None = None,
    at_sender: bool = False,
    force: bool = False,
) -> list[Path]:
    """Export the packets, graphs or tables of a capture, workspace or scenario to `path`; return the files written.

    `format` is pcapng, xpl, web100, csv, jsonl, parquet or sqlite; see `hindflight.exporting.Request` for the others.
    HindflightError: an unknown format, flow, run or table, or an output that may not be replaced.
    """
    from hindflight.exporting import Request, export_source

    chosen = Request(format, flow, run, table, anonymize, None if key is None else Path(key), at_sender, force)
    return export_source(Path(source), Path(path), chosen)


def score(workspace: Path | str) -> list[Score]:
    """Compare the inferred cwnd of each flow of a workspace with the kernel's, as the command `score`.

    WorkspaceError: it is not a workspace. HindflightError: no flow has both.
    """
    from hindflight.toolkit.score import score as compare_windows
    from hindflight.toolkit.workspace import Workspace

    return compare_windows(Workspace.open(Path(workspace)))


def variants() -> tuple[Variant, ...]:
    """Return the TCP variants of the engine with their parameters, as the command `variants`."""
    from hindflight.replay.catalogue import catalogue

    return catalogue()


def models() -> tuple[ModelReference, ...]:
    """Return the channel models with their keys, as `channel models`."""
    from hindflight.channels.models.reference import model_references

    return tuple(model_references())


def synth(model: str, *, seed: int = 1, span_s: float = 60.0, packets: int = 100_000, **settings: Any) -> Trace:
    """Generate a channel from a model, or from a TOML file with its parameters, as `channel synth`: packets in one
    direction, or the states of a link in continuous time in both.

    `settings` are keys of the model, with values as in the file ("20 ms"). `span_s` is the length in s of a model in
    continuous time (by default a minute), `packets` that of a model per packet (by default 100,000). `seed` is from 0
    to 2**64 - 1; a seed gives the same channel on every machine.
    ChannelError: there is no such model, or a key or value is wrong.
    """
    from hindflight.channels.models.synth import Extent, read_model, synthesise_trace
    from hindflight.toolkit.errors import ChannelError, did_you_mean

    try:
        chosen = read_model(model, settings)
    except ChannelError as error:
        own = [did_you_mean(key, ("seed", "span_s", "packets"), lead=f"{key}: ") for key in settings]
        error.hint = error.hint or next(filter(None, own), None)
        raise
    extent = Extent(round(span_s * 1e9), packets)
    return synthesise_trace(chosen, seed=seed, extent=extent, directions=("a2b", "b2a"))


def read_channel(path: Path | str, *, format: str | None = None) -> Trace:  # noqa: A002 - the name of the option
    """Read a channel in `format`, one of those of `channel convert`, or else in that which its name and contents show.

    ChannelError: the file is not valid, or its format unknown.
    """
    from hindflight.channels.formats import read_channel as read

    return read(path, format)


def write_channel(
    trace: Trace,
    path: Path | str,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    force: bool = False,
) -> list[str]:
    """Write a channel in `format`, or else in that of the file name; return what the file omits.

    ChannelError: the format can represent nothing of it. HindflightError: the file may not be replaced.
    """
    from hindflight.channels.formats import write_channel as write

    return write(trace, path, format, force=force)


def channel_statistics(trace: Trace) -> list[Statistic]:
    """Return the statistics of a channel: losses, their runs, rates, delays, outages, as `channel show`."""
    from hindflight.channels.fitting.statistics import statistics

    return statistics(trace, "the channel")


def fit(trace: Trace, *models: str, level: float = 0.95) -> Fits:
    """Fit loss models (default: all) to a channel by maximum likelihood, as `channel fit`.

    `level` is the confidence of the intervals, from 0.5 to 0.9999.

    ChannelError: an unknown model, or a channel without packets, without losses or with nothing else.
    """
    from hindflight.channels.fitting.fit import fit_models
    from hindflight.channels.fitting.loss_sequence import loss_sequence_of

    return fit_models(loss_sequence_of(trace, "the channel"), models or ("all",), level)


def sensitivity(scenario: Path | str, *, threads: int | None = None) -> Sensitivity:
    """Measure how much the results of a scenario depend on the way in which losses are replayed, as `channel
    sensitivity`.

    `outcomes` has the goodput of each variant, proxy and way in bit/s, with a 95 % interval where it is a mean over
    seeds: those of the scenario, two at least. `threads` run at a time, by default one for each processor.
    ScenarioError: it names no loss trace. ChannelError: nothing can be fitted to it.
    """
    from hindflight.replay.experiment.sensitivity import measure_sensitivity
    from hindflight.workflow import read_scenario

    return measure_sensitivity(read_scenario(Path(scenario)), Path(scenario).parent, threads=threads)


def _rows_of(source: Source, table: str, profile: str, conditions: Conditions) -> pl.DataFrame:
    from hindflight.selection import Selection, frame_of

    if not profile:
        return frame_of(source, table, Selection(**conditions))
    from hindflight.profiles import profile_frame
    from hindflight.toolkit.errors import HindflightError

    if conditions:
        raise HindflightError(f"a profile gives every row of a capture, not those of {', '.join(conditions)}")
    sources = [source] if isinstance(source, Path | str) else source
    return profile_frame([Path(one) for one in sources], table, profile)


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
