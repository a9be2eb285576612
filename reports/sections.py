"""The sections of a report, in order: their sentences, grids and charts, and what they say without data.

A chart without data is replaced by the sentence that says why. Does not depend on HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import altair as alt

from hindflight.reports import charts, findings
from hindflight.reports.findings import Grid
from hindflight.reports.frames import Tables, View, captured_flows, flow_of, read_flow, uses_channel_model
from hindflight.reports.numbers import quantity
from hindflight.reports.texts import CHART_CAPTIONS, HOW_TO_READ, HOW_TO_READ_MODEL
from hindflight.toolkit.errors import ReportError

FLOWS_SHOWN = 4
"""Maximum number of flows with charts; those with the most data come first."""

AnyChart = alt.LayerChart | alt.ConcatChart


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart in its place. Pictures of one `group` zoom together."""

    chart: AnyChart
    group: str = ""
    caption: str = ""
    commands: tuple[str, ...] = ()
    """Commands that print the data of the chart, all rows of them."""


@dataclass(slots=True)
class Section:
    """A section: heading, sentences, then its parts in order. A part of type str is one sentence."""

    key: str
    title: str
    sentences: list[str] = field(default_factory=list)
    parts: list[Section | Grid | Figure | str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A function that draws a chart, and the caption that says how to read it."""

    draw: Callable[[Tables, View], AnyChart]
    caption: str


_FLOW_CHARTS = (
    Recipe(charts.time_sequence, CHART_CAPTIONS["time_sequence"]),
    Recipe(charts.cwnd, CHART_CAPTIONS["cwnd"]),
    Recipe(charts.rtt, CHART_CAPTIONS["rtt"]),
    Recipe(charts.throughput, CHART_CAPTIONS["throughput"]),
    Recipe(charts.losses, CHART_CAPTIONS["losses"]),
)

_SELF_CHECK = (
    Recipe(charts.self_check_sequence, CHART_CAPTIONS["self_check_sequence"]),
    Recipe(charts.self_check_cwnd, CHART_CAPTIONS["self_check_cwnd"]),
)

_WHAT_IF = (
    Recipe(lambda tables, _: charts.what_if_goodput(tables), CHART_CAPTIONS["what_if_goodput"]),
    Recipe(lambda tables, _: charts.what_if_difference(tables), CHART_CAPTIONS["what_if_difference"]),
    Recipe(lambda tables, _: charts.goodput_and_delay(tables), CHART_CAPTIONS["goodput_and_delay"]),
    Recipe(charts.what_if_cwnd, CHART_CAPTIONS["what_if_cwnd"]),
)

_SHARING = "Flows that shared the path; losses are data packets lost per data packet sent"

_WHAT_IF_MODEL = (
    Recipe(_WHAT_IF[0].draw, CHART_CAPTIONS["what_if_goodput_model"]),
    *_WHAT_IF[1:3],
    Recipe(charts.what_if_cwnd, CHART_CAPTIONS["what_if_cwnd_model"]),
)


def sections(tables: Tables, manifest: Mapping[str, object], *, utc: bool = False) -> list[Section]:
    """Return the sections of the report, in order."""
    views = [replace(view, utc=utc) for view in captured_flows(tables)]
    how_to_read = HOW_TO_READ_MODEL if _is_model_only(tables, views) else HOW_TO_READ
    return [
        _key_numbers(tables, views),
        _self_check(tables, views),
        _what_happened(tables, views),
        _what_if(tables, views),
        _unknown(tables),
        Section("how_to_read", "How to read this", parts=list(how_to_read)),
        _provenance(tables, manifest),
    ]


def summary(tables: Tables) -> str:
    """Return the sentences of the findings' section `summary` as one paragraph."""
    if sentences := findings.sentences(findings.findings_of(tables, "summary")):
        return " ".join(sentences)
    if findings.any_findings(tables):
        return "No summary was computed for these tables; the sections below show the findings."
    return "No findings were computed for these tables; the charts below show their data."


def _is_model_only(tables: Tables, views: list[View]) -> bool:
    """Return whether the tables hold runs over a channel model and no captured flow."""
    return not views and uses_channel_model(tables, "what_if")


def _key_numbers(tables: Tables, views: list[View]) -> Section:
    rows = findings.findings_of(tables, "key_numbers")
    grid = findings.key_numbers(rows, "The captured flow and its path") or _flow_numbers(tables, views)
    reason = "These tables hold no flow, so there are no key numbers."
    if _is_model_only(tables, views):
        reason = "No flow was captured, so there are no key numbers; the section What if has the numbers of the runs."
    return Section("key_numbers", "Key numbers", parts=[grid or reason])


def _flow_numbers(tables: Tables, views: list[View]) -> Grid | None:
    """Return the counters of each flow from `flows`, for a report without findings."""
    names = ("data_segments", "retransmitted_segments", "unique_bytes", "rtt_min_ns", "rtos")
    head = ("Flow", "Data segments", "Retransmitted segments", "Payload", "Minimum RTT", "RTOs")
    grid = Grid("Flows", head)
    for view in views[: 5 * FLOWS_SHOWN]:
        flow = flow_of(tables, view)
        columns = [f"{flow.data}_{name}" for name in names]
        row = read_flow(tables, "flows", view, columns)
        if row.is_empty():
            continue
        units = ("", "", "bytes", "ns", "")
        cells = [findings.Cell(quantity(v, u), number=True) for v, u in zip(row.row(0), units, strict=True)]
        grid.rows.append((findings.Cell(flow_name(tables, view)), *cells))
    return grid if grid.rows else None


def _self_check(tables: Tables, views: list[View]) -> Section:
    rows = findings.findings_of(tables, "self_check")
    section = Section("self_check", "Self-check", findings.sentences(rows))
    if not rows and _is_model_only(tables, views):
        section.parts.append("No flow was captured, so there is nothing to compare a replay with.")
        return section
    channel = "a model of the channel" if uses_channel_model(tables, "self_check") else "the captured channel"
    grid = findings.by_subject(rows, f"The capture, and each candidate variant replayed over {channel}", "Variant")
    grid = grid or findings.replayed_runs(tables, "self_check", f"Candidate variants replayed over {channel}")
    section.parts += [grid] if grid else []
    return _add_figures(section, tables, views[0] if views else View(), (_SELF_CHECK, "self-check"))


def _what_happened(tables: Tables, views: list[View]) -> Section:
    sentences = findings.sentences(findings.findings_of(tables, "what_happened"))
    section = Section("what_happened", "What happened", sentences)
    if not views:
        section.parts.append("No flow was captured or logged: these runs use a channel model.")
    link = findings.key_numbers(findings.findings_of(tables, "channel"), "The link, as extracted from the capture")
    section.parts += [link] if link else []
    for view in views[:FLOWS_SHOWN]:
        part = Section(f"flow-{view.flow_id}", f"Flow {flow_name(tables, view)}")
        _add_figures(part, tables, view, (_FLOW_CHARTS, part.key))
        losses = findings.loss_table(tables, flow_of(tables, view))
        part.parts += [losses] if losses else []
        section.parts.append(part)
    if len(views) > FLOWS_SHOWN:
        section.parts.append(
            f"The {FLOWS_SHOWN} flows with the most data are shown; {len(views) - FLOWS_SHOWN} more are not."
        )
    return section


def _what_if(tables: Tables, views: list[View]) -> Section:
    rows, sensitivity = findings.findings_of(tables, "what_if"), findings.findings_of(tables, "sensitivity")
    section = Section("what_if", "What if", findings.sentences([*rows, *sensitivity]))
    modelled = uses_channel_model(tables, "what_if")
    mean = "Mean over the seeds" if modelled else "Mean over the resampled channel"
    runs = "Each run, over the channel of its seed" if modelled else "The captured channel, replayed unchanged"
    grids = (
        findings.by_subject(rows, f"{mean}, with its 95 % interval", "Variant"),
        findings.by_subject(findings.findings_of(tables, "sharing"), _SHARING, "Flow"),
        findings.replayed_runs(tables, "what_if", runs),
        findings.by_subject(sensitivity, "Goodput by method of replaying the captured losses", "Variant"),
    )
    section.parts += [grid for grid in grids if grid]
    recipes = _WHAT_IF_MODEL if modelled else _WHAT_IF
    return _add_figures(section, tables, views[0] if views else View(), (recipes, ""))


def _add_figures(section: Section, tables: Tables, view: View, recipes: tuple[tuple[Recipe, ...], str]) -> Section:
    reasons: set[str] = set()
    for recipe in recipes[0]:
        try:
            section.parts.append(Figure(recipe.draw(tables, view), recipes[1], recipe.caption))
        except ReportError as error:
            if str(error) not in reasons:
                section.parts.append(str(error))
            reasons.add(str(error))
    return section


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


def flow_name(tables: Tables, view: View) -> str:
    """Return the number of a flow and its two endpoints, the data sender first."""
    row = read_flow(tables, "flows", view, ["data_direction", "a_addr", "a_port", "b_addr", "b_port"])
    if row.is_empty():
        return str(view.flow_id)
    direction, *ends = row.row(0)
    a, b = _end(ends[0], ends[1]), _end(ends[2], ends[3])
    first, second = (a, b) if direction == "a2b" else (b, a)
    return f"{view.flow_id}: {first} to {second}"


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
