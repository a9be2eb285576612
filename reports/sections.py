"""The sections of a report, in order: their sentences, grids and charts, and what they say without data.

A chart without data is replaced by the sentence that says why. Does not depend on HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import altair as alt
from altair.utils.schemapi import debug_mode

from hindflight.reports import charts, findings
from hindflight.reports.findings import Grid
from hindflight.reports.flow_table import flow_name, flow_numbers, time_zero
from hindflight.reports.frames import (
    KeptTables,
    Tables,
    View,
    captured_flows,
    column_names,
    flow_of,
    predicts_flights,
    uses_channel_model,
    uses_proxies,
)
from hindflight.reports.link import flow_of_link
from hindflight.reports.numbers import with_minus_signs
from hindflight.reports.texts import (
    CHART_CAPTIONS,
    HOW_FAULTS,
    HOW_TO_READ,
    HOW_TO_READ_FLIGHT,
    HOW_TO_READ_MODEL,
    INTERRUPTIONS,
    NO_LINK,
    NO_PLACES,
    NOTHING_REPLAYED,
    PROXY_FAULTS,
    STRETCHES,
)
from hindflight.toolkit.errors import ReportError
from hindflight.toolkit.schema import DAMAGE_METRICS, INTERVAL_METRIC
from hindflight.toolkit.text import shell_line

FLOWS_SHOWN = 4
"""Maximum number of flows with charts; those with the most data come first."""

UNFOLDED_ROWS = 30
"""Maximum number of findings, of three per row, in a table of changes that is not folded below its sentences."""

AnyChart = alt.LayerChart | alt.ConcatChart


@dataclass(frozen=True)
class Figure:
    """A chart in its place. `key` is its anchor on the page. Charts of one `group` zoom together."""

    chart: AnyChart
    key: str
    group: str = ""
    caption: str = ""
    commands: tuple[str, ...] = ()
    """Commands that print the data of the chart, all rows of them."""

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The chart in Vega-Lite. Not to be changed: all readers get the same one."""
        with debug_mode(False):  # As in `_add_figures`.
            found: dict[str, Any] = self.chart.to_dict(validate=False)
        return found


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence that nobody may miss."""

    warning: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence of the first section, and the anchor on the page of what is behind it, with its name."""

    sentence: str
    anchor: str = ""
    behind: str = ""


Part: TypeAlias = "Section | Grid | Figure | Notice | Finding | str"


@dataclass(slots=True)
class Section:
    """A section: heading, sentences, then its parts in order. A part of type str is one sentence."""

    key: str
    title: str
    sentences: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Source:
    """What a report is made of: its tables, the name of their workspace in the commands it shows, and for a table that
    the workspace does not have the command that makes it."""

    tables: Tables
    workspace: str = "WORKSPACE"
    made_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    """Tables that do not belong to the flow that is drawn."""
    drawn: Mapping[str, Figure] = field(default_factory=dict)
    """Charts of the same tables that need not be drawn again, by key."""

    def without(self, table: str) -> Source:
        """Return the source without a table."""
        kept = {name: rows for name, rows in self.tables.items() if name != table}
        return replace(self, tables=kept, left_out=self.left_out | {table})


@dataclass(frozen=True, slots=True)
class Recipe:
    """A function that draws a chart, the name of the chart, and the tables (with columns) that it draws: of one
    captured flow or, with `of_runs`, of runs, too."""

    draw: Callable[[Tables, View], AnyChart]
    name: str
    columns: Mapping[str, str] = field(default_factory=dict)
    caption: str = ""
    of_runs: bool = False

    @property
    def text(self) -> str:
        """How to read the chart."""
        return CHART_CAPTIONS[self.caption or self.name]

    def commands(self, view: View, source: Source) -> tuple[str, ...]:
        """Return the commands that print all data of the chart: of one captured flow, or of all runs as well."""
        found = []
        for table, columns in self.columns.items():
            if table in source.left_out:
                continue
            if table in source.made_by:
                found.append(shell_line([*source.made_by[table]]))
                continue
            keys = {"run_id": view.run_id, "flow_id": view.flow_id}
            keys = {key: value for key, value in keys.items() if key in column_names(table)}
            named = [*keys, columns] if self.of_runs and columns != "*" else [columns]
            where = "" if self.of_runs else " AND ".join(f"{key} = {value}" for key, value in keys.items())
            words = ["SELECT", ", ".join(named), "FROM", table, *(["WHERE", where] if where else [])]
            found.append(shell_line(["hindflight", "query", source.workspace, " ".join(words), "--csv"]))
        return tuple(found)


_SENT = "t_ns, record, direction, seq, payload_bytes, ack, wnd_bytes, sack, retransmission"
_EVENTS = "t_ns, end_ns, kind, cause, record, seq_start, seq_end, evidence"
_LINK = "t_ns, end_ns, kind, direction, lost, rate_bps, delay_ns"

_FLOW_CHARTS = (
    Recipe(charts.time_sequence, "time_sequence", {"segments": _SENT, "events": _EVENTS}),
    Recipe(
        charts.cwnd,
        "cwnd",
        {
            "instruments": "t_ns, source, phase, cwnd_bytes, ssthresh_bytes, snd_wnd_bytes",
            "segments": "t_ns, flight_bytes, wnd_bytes",
        },
    ),
    Recipe(charts.rtt, "rtt", {"segments": "t_ns, record, rtt_ns", "instruments": "t_ns, source, srtt_ns"}),
    Recipe(charts.throughput, "throughput", {"segments": "t_ns, direction, payload_bytes, ack", "channel": _LINK}),
    Recipe(charts.losses, "losses", {"events": _EVENTS}),
    Recipe(charts.packet_delay, "packet_delay", {"segments": "t_ns, record, rtt_ns", "channel": _LINK}),
    Recipe(charts.queue_occupancy, "queue_occupancy", {"segments": "t_ns, record, rtt_ns", "channel": _LINK}),
    Recipe(charts.captured_application_delay, "application_delay", {"segments": _SENT}),
    Recipe(charts.link_state, "link_state", {"channel": _LINK}),
    Recipe(charts.stevens, "stevens", {"segments": _SENT}),
)

_LOGGED = {"telemetry": "t_ns, name, unit, value"}
FLIGHT_CHARTS = 4
"""Maximum number of charts of a flight log, besides the track: one for each unit."""


def _flight_charts(tables: Tables, view: View) -> tuple[list[Recipe], list[Recipe]]:
    """Return a chart for each unit of the flight log, and the track in each colour if it has places; none without a
    log."""
    units = charts.flight_units(tables, view)
    values = [Recipe(partial(charts.flight_values, unit=unit), f"flight_{unit}", _LOGGED, "flight") for unit in units]
    tracks = [
        Recipe(partial(charts.track, colour=colour), f"track_{colour}", {**_LOGGED, "segments": _SENT}, "track")
        for colour in charts.TRACK_COLOURS
    ]
    return values[:FLIGHT_CHARTS], tracks if charts.has_track(tables, view) else []


def _of_runs(draw: Callable[[Tables, View], AnyChart], name: str, columns: Mapping[str, str]) -> Recipe:
    return Recipe(draw, name, columns, of_runs=True)


_SELF_CHECK = (
    _of_runs(charts.self_check_sequence, "self_check_sequence", {"segments": _SENT}),
    _of_runs(charts.self_check_cwnd, "self_check_cwnd", {"instruments": "t_ns, source, cwnd_bytes"}),
)

_RUNS = {"runs": "*"}
_COMPARED = {"findings": "*"}
_BURSTS = {"segments": "leg, t_ns, record, direction, payload_bytes", "events": "leg, kind, direction, record"}
_WHAT_IF = (
    _of_runs(lambda tables, _: charts.what_if_goodput(tables), "what_if_goodput", {**_RUNS, **_COMPARED}),
    _of_runs(lambda tables, _: charts.what_if_difference(tables), "what_if_difference", _COMPARED),
    _of_runs(lambda tables, _: charts.goodput_and_delay(tables), "goodput_and_delay", {**_RUNS, **_COMPARED}),
    _of_runs(charts.what_if_throughput, "what_if_throughput", {"segments": "*"}),
    _of_runs(charts.what_if_rtt, "what_if_rtt", {"segments": "*"}),
    _of_runs(charts.what_if_loss_bursts, "what_if_loss_bursts", _BURSTS),
    _of_runs(charts.what_if_cwnd, "what_if_cwnd", {"instruments": "*"}),
)

_QUEUE = _of_runs(charts.what_if_queue, "what_if_queue", {"segments": "t_ns, record, rtt_ns", "channel": _LINK})
_PROXY = _of_runs(
    lambda tables, _: charts.what_if_proxy(tables),
    "what_if_proxy",
    {"instruments": "leg, t_ns, proxy_stored_bytes, proxy_undelivered_bytes"},
)
_DELAY = _of_runs(lambda tables, _: charts.what_if_application_delay(tables), "what_if_application_delay", _RUNS)
_SHARED = _of_runs(lambda tables, _: charts.what_if_sharing(tables), "what_if_sharing", _COMPARED)
_SWEEPS = {"goodput_over_loss": charts.goodput_over_loss, "goodput_over_cache": charts.goodput_over_cache}
_CACHES = _of_runs(lambda tables, _: charts.goodput_over_cache([tables]), "goodput_over_cache", {**_RUNS, **_COMPARED})

_SHARING = "Flows that shared the path; losses are data packets lost per data packet sent"

_WHAT_IF_MODEL = (
    replace(_WHAT_IF[0], caption="what_if_goodput_model"),
    *_WHAT_IF[1:-1],
    replace(_WHAT_IF[-1], caption="what_if_cwnd_model"),
)


def sections(source: Source, manifest: Mapping[str, object], *, utc: bool = False) -> list[Section]:
    """Return the sections of the report, in order."""
    source = replace(source, tables=KeptTables(source.tables))
    tables = source.tables
    views = [replace(view, utc=utc) for view in captured_flows(tables)]
    how_to_read = HOW_TO_READ_MODEL if _is_model_only(tables, views) else HOW_TO_READ
    replayed = not views or findings.is_replayed(tables)
    after = [
        _interruptions(tables, views),
        _recommendation(tables),
        _trust(source, views) if replayed else None,
        _what_happened(source, views),
        _what_if(source, views) if replayed else Section("what_if", "What if", [NOTHING_REPLAYED]),
        _unknown(tables),
        Section("how_to_read", "How to read this", parts=list(how_to_read if replayed else HOW_TO_READ_FLIGHT)),
        _provenance(tables, manifest),
    ]
    shown = [section for section in after if section is not None]
    return [_findings(tables, views, shown), *shown]


def combined(
    changes: Sequence[tuple[str, Sequence[findings.Row]]],
    names: Sequence[str],
    parts: Sequence[Sequence[Section]],
    sources: Sequence[Source] = (),
) -> list[Section]:
    """Return the sections of a report on several workspaces: what changed, then those of each, under its name.

    `changes` holds, for each workspace but the first, a caption and rows of `findings`: metrics become columns, texts
    sentences. `sources`, one for each workspace, are drawn as a sweep if their scenarios are one.
    """
    changed = Section("changes", "What changed", [text for _, rows in changes for text in findings.sentences(rows)])
    for name, (caption, rows) in zip(names[1:], changes, strict=True):
        grid = findings.by_subject(rows, caption, "Subject", folded=len(rows) > UNFOLDED_ROWS)
        head = ("Subject", names[0], name, "Change")  # Names of folders, which are no names of quantities.
        changed.parts.append(replace(grid, head=head) if grid else f"{caption}: nothing to compare.")
    changed.parts += _sweeps(sources)
    each = [
        Section(f"w{number}", name, parts=[_renamed(section, f"w{number}-") for section in found])
        for number, (name, found) in enumerate(zip(names, parts, strict=True), 1)
    ]
    return [changed, *each]


def _sweeps(sources: Sequence[Source]) -> list[Figure]:
    """Return the charts of goodput over what the scenarios of several workspaces vary; none if they are no sweep."""
    found = []
    for name, draw in _SWEEPS.items() if sources else ():
        recipe = replace(_CACHES, name=name)
        with suppress(ReportError):
            chart = draw([source.tables for source in sources])
            commands = tuple(line for source in sources for line in recipe.commands(View(), source))
            found.append(Figure(chart, name, caption=recipe.text, commands=commands))
    return found


def _renamed(part: Part, prefix: str) -> Part:
    """Return a part whose anchors, and groups of charts, begin with `prefix`."""
    match part:
        case Section():
            inside = [_renamed(each, prefix) for each in part.parts]
            return Section(prefix + part.key, part.title, part.sentences, inside)
        case Figure():
            return replace(part, key=prefix + part.key, group=prefix + part.group if part.group else "")
        case Finding() if part.anchor:
            return replace(part, anchor=prefix + part.anchor)
    return part


_BEHIND = {
    "goodput": ("throughput", "throughput over time"),
    "limits": ("cwnd", "congestion window and data in flight"),
    "losses": ("losses", "losses over time"),
    "retransmissions": ("losses", "losses and retransmissions"),
    "rtt": ("rtt", "round-trip times"),
    "interruptions": ("interruptions", "table of outages"),
    "self_check": ("self_check_sequence", "self-check"),
    "what_if": ("what_if_goodput", "goodput of each variant"),
}
"""What stands behind a sentence of the summary, by its metric: name of the chart or section, and of the link."""


def _findings(tables: Tables, views: list[View], after: list[Section]) -> Section:
    """Return the first section: each sentence of the summary with a link to what is behind it."""
    anchors = _anchors(after)
    section = Section("findings", "Findings")
    flow = f"flow-{views[0].flow_id}-" if views else ""
    for row in findings.findings_of(tables, "summary"):
        name, behind = _BEHIND.get(str(row["metric"]), ("", ""))
        anchor = next((a for a in (f"{flow}{name}", name) if a in anchors), "")
        section.parts.append(Finding(with_minus_signs(str(row["text"])), anchor, behind if anchor else ""))
    if not section.parts:
        section.parts.append(_without_summary(tables))
    return section


def _anchors(found: Sequence[Part]) -> set[str]:
    keys = set(figures_of(found))
    for part in found:
        if isinstance(part, Section):
            keys |= {part.key, *_anchors(part.parts)}
    return keys


def figures_of(found: Sequence[Part]) -> dict[str, Figure]:
    """Return the charts of sections by key."""
    figures: dict[str, Figure] = {}
    for part in found:
        if isinstance(part, Section):
            figures |= figures_of(part.parts)
        elif isinstance(part, Figure):
            figures[part.key] = part
    return figures


def _without_summary(tables: Tables) -> str:
    if findings.any_findings(tables):
        return "No summary was computed for these tables; the sections below show the findings."
    return (
        "No findings were computed for these tables: they are made from the packets of a captured flow with data, or "
        "by a replay. The charts below show the data."
    )


def _is_model_only(tables: Tables, views: list[View]) -> bool:
    """Return whether the tables hold runs over a channel model and no captured flow."""
    return not views and uses_channel_model(tables, "what_if")


def _key_numbers(tables: Tables, views: list[View]) -> Grid | str:
    rows = findings.findings_of(tables, "key_numbers")
    grid = findings.key_numbers(rows, "The captured flow and its path")
    if _is_model_only(tables, views):
        return "No flow was captured, so there are no key numbers; the section What if has the numbers of the runs."
    return grid or flow_numbers(tables, views) or "These tables hold no flow, so there are no key numbers."


def _interruptions(tables: Tables, views: list[View]) -> Section | None:
    rows = findings.findings_of(tables, "interruptions")
    faults = findings.by_subject(findings.findings_of(tables, "proxy_faults"), PROXY_FAULTS, "Fault")
    of_proxies: list[Part] = [faults, HOW_FAULTS] if faults else []
    title = "Outages, handovers and faults of proxies" if faults else "Outages and handovers"
    section = Section("interruptions", title if views else "Faults of proxies")
    grid = findings.by_subject(rows, "Outages, and steps of delay or rate (path changes)", "Interruption")
    if grid:
        placed = any(row["metric"] == "place" for row in rows)
        section.parts += [grid, INTERRUPTIONS, *([] if placed else [NO_PLACES]), *of_proxies]
        return section
    if not views and of_proxies:
        section.parts += of_proxies
        return section
    if not findings.findings_of(tables, "channel") and not findings.findings_of(tables, "key_numbers"):
        return None
    link_unknown = any(row["metric"] == "link" for row in findings.findings_of(tables, "unknown"))
    none_found = "No outage and no step of delay or rate was found on the link of the flow."
    section.parts.append(NO_LINK if link_unknown else none_found)
    section.parts += of_proxies
    return section if views else None


def _recommendation(tables: Tables) -> Section | None:
    rows = findings.findings_of(tables, "recommendation")
    return Section("recommendation", "Recommendation", findings.sentences(rows)) if rows else None


def _trust(source: Source, views: list[View]) -> Section:
    """Return the section that says how far a what-if can be trusted: self-check and sensitivity."""
    tables = source.tables
    rows, sensitivity = findings.findings_of(tables, "self_check"), findings.findings_of(tables, "sensitivity")
    section = Section("self_check", "How far to trust a replay")
    warning = findings.self_check_warning(tables)
    section.parts += [Notice(warning)] if warning else []
    section.parts += findings.sentences(rows)
    if not rows and _is_model_only(tables, views):
        section.parts.append("No flow was captured, so there is nothing to compare a replay with.")
        return section
    _add_figures(section, source, views[0] if views else View(), (_SELF_CHECK, ""), "self-check")
    channel = "a model of the channel" if uses_channel_model(tables, "self_check") else "the captured channel"
    grid = findings.by_subject(rows, f"The capture, and each candidate variant replayed over {channel}", "Variant")
    grid = grid or findings.replayed_runs(tables, "self_check", f"Candidate variants replayed over {channel}")
    section.parts += [grid] if grid else []
    section.parts += findings.sentences(sensitivity)
    ways = findings.by_subject(sensitivity, "Goodput by method of replaying the captured losses", "Variant")
    section.parts += [ways] if ways else []
    return section


def _what_happened(source: Source, views: list[View]) -> Section:
    tables = source.tables
    sentences = findings.sentences(findings.findings_of(tables, "what_happened"))
    section = Section("what_happened", "What happened", sentences)
    if not views:
        section.parts.append("No flow was captured or logged: these runs use a channel model.")
    section.parts.append(_key_numbers(tables, views))
    link = findings.key_numbers(findings.findings_of(tables, "channel"), "The link, as extracted from the capture")
    section.parts += [link] if link else []
    parts = findings.by_subject(findings.findings_of(tables, "stretches"), STRETCHES, "Stretch")
    section.parts += [parts] if parts else []
    if len(views) > 1:
        flows = flow_numbers(tables, views)
        section.parts += [flows] if flows and flows not in section.parts else []
    of_link = flow_of_link(tables, views) if len(views) > 1 else None
    for view in views[:FLOWS_SHOWN]:
        part = Section(f"flow-{view.flow_id}", f"Flow {flow_name(tables, view)}", time_zero(tables, view))
        drawn = source
        if of_link not in (None, view):
            drawn = source.without("channel")
            part.sentences.append(_how_to_extract(source, view))
        # The flight log stands below the first chart, so that it is seen with the flow, and zooms with all others.
        values, tracks = _flight_charts(tables, view)
        recipes = (*_FLOW_CHARTS[:1], *values, *_FLOW_CHARTS[1:], *tracks)
        _add_figures(part, drawn, view, (recipes, f"{part.key}-"), part.key)
        losses = findings.loss_table(drawn.tables, flow_of(tables, view))
        part.parts += [losses] if losses else []
        section.parts.append(part)
    if len(views) > FLOWS_SHOWN:
        section.parts.append(
            f"The {FLOWS_SHOWN} flows with the most data are drawn; {len(views) - FLOWS_SHOWN} more are not."
        )
    return section


def _how_to_extract(source: Source, view: View) -> str:
    """Say how to get the link of a flow that is not the one whose link was extracted."""
    words = ["hindflight", "channel", "extract", source.workspace, "--flow", str(view.flow_id), "-o", "channel.parquet"]
    return f"The link was extracted for another flow. For that of this one: {shell_line(words)}"


_SENTENCES_SHOWN = {"", "goodput_gain", "resets", *DAMAGE_METRICS}
"""Metrics of what-if findings whose sentences are shown; those of the others are in the folded table."""


def _what_if(source: Source, views: list[View]) -> Section:
    tables = source.tables
    rows = findings.findings_of(tables, "what_if")
    said = [row for row in rows if row["metric"] in _SENTENCES_SHOWN]
    section = Section("what_if", "What if", findings.sentences(said))
    warning = findings.self_check_warning(tables)
    section.parts += [Notice(warning)] if warning else []
    modelled = uses_channel_model(tables, "what_if")
    recipes = (*_what_if_charts(tables, modelled=modelled), *_where_they_apply(tables))
    _add_figures(section, source, views[0] if views else View(), (recipes, ""), "")
    mean = "Mean over the seeds" if modelled else "Mean over the resampled channel"
    mean = "Goodput of one flight, and the mean of the rest over the seeds" if predicts_flights(tables) else mean
    runs = "Each run, over the channel of its seed" if modelled else "The captured channel, replayed unchanged"
    shown = [row for row in rows if row["metric"] != INTERVAL_METRIC]
    grids = (
        findings.by_subject(shown, f"{mean}, with its 95 % interval", "Variant", folded=True),
        findings.by_subject(findings.findings_of(tables, "sharing"), _SHARING, "Flow", folded=True),
        findings.replayed_runs(tables, "what_if", runs),
        findings.how_predicted([row for row in rows if row["metric"] == "goodput"]),
    )
    section.parts += [grid for grid in grids if grid]
    return section


def _what_if_charts(tables: Tables, *, modelled: bool) -> tuple[Recipe, ...]:
    """Return the charts of the what-if runs; the caption of the first says what its bars are."""
    if modelled:
        return _WHAT_IF_MODEL
    first = _WHAT_IF[0] if predicts_flights(tables) else replace(_WHAT_IF[0], caption="what_if_goodput_mean")
    return (first, *_WHAT_IF[1:], _QUEUE)


def _where_they_apply(tables: Tables) -> tuple[Recipe, ...]:
    """Return the charts of application delay, proxies and flows that shared the path, where the runs have them."""
    delays = [_DELAY] if charts.has_application_delay(tables) else []
    split = [_PROXY] if uses_proxies(tables) else []
    split += [_CACHES] if charts.has_cache_sweep(tables) else []
    return (*delays, *split, *([_SHARED] if findings.findings_of(tables, "sharing") else []))


def _add_figures(
    section: Section, source: Source, view: View, recipes: tuple[tuple[Recipe, ...], str], group: str
) -> None:
    """Draw the charts of `recipes`, whose keys begin with its second item; a chart without data is a sentence.

    Altair's check of every part against its schema, a tenth of the time of a report, is left to the tests.
    """
    reasons: set[str] = set()
    for recipe in recipes[0]:
        key = recipes[1] + recipe.name
        if key in source.drawn:
            section.parts.append(source.drawn[key])
            continue
        try:
            with debug_mode(False):
                chart = recipe.draw(source.tables, view)
        except ReportError as error:
            if str(error) not in reasons:
                section.parts.append(str(error))
            reasons.add(str(error))
            continue
        commands = recipe.commands(view, source)
        section.parts.append(Figure(chart, key, group, recipe.text, commands))


def _unknown(tables: Tables) -> Section:
    sentences = findings.unknowns(tables)
    section = Section("unknown", "What is not known", sentences)
    section.parts += [] if sentences else ["No finding is marked as unknown. Other unknowns may exist."]
    issues = findings.issue_table(tables)
    section.parts.append(issues or "Every record of the inputs was decoded.")
    return section


_INTERNAL_KEYS = {"tables", "next_part"}
"""Keys of a workspace's manifest that a report leaves out: the workspace's file list."""


def _provenance(tables: Tables, manifest: Mapping[str, object]) -> Section:
    section = Section("provenance", "Provenance")
    captions = {
        "inputs": "Inputs",
        "versions": "Versions",
        "commands": "Commands",
        "parameters": "Parameters that differ from their defaults",
    }
    grids = [findings.mappings(manifest.get(key), caption) for key, caption in captions.items()]
    grids.append(findings.run_provenance(tables))
    grids.append(findings.setup(findings.findings_of(tables, "setup")))
    rest = {key: value for key, value in manifest.items() if key not in captions and key not in _INTERNAL_KEYS}
    grids.append(findings.mappings(rest, "Workspace"))
    section.parts += [grid for grid in grids if grid]
    if not section.parts:
        section.parts.append("These tables have no manifest, so their origin is not known.")
    return section
