"""The sections of a report, in order: which sentences, grids and charts each holds, and what it says without data.

Knows charts and findings; knows no HTML. A chart that the tables cannot give becomes the sentence that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import altair as alt

from hindflight.reports import charts, findings
from hindflight.reports.findings import Grid
from hindflight.reports.frames import Tables, View, captured_flows, flow_of, is_modelled, read_flow
from hindflight.reports.numbers import quantity
from hindflight.reports.texts import HOW, HOW_TO_READ, HOW_TO_READ_MODEL
from hindflight.toolkit.errors import ReportError

FLOWS_SHOWN = 4
"""Flows that get their charts: those with the most data; a page of forty flows would be nobody's reading."""

AnyChart = alt.LayerChart | alt.ConcatChart


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart in its place. Pictures of one `group` zoom together."""

    chart: AnyChart
    group: str = ""
    how: str = ""


@dataclass(slots=True)
class Section:
    """One section: heading, sentences, then its parts in order; a part that is text is one sentence."""

    key: str
    title: str
    sentences: list[str] = field(default_factory=list)
    parts: list[Section | Grid | Picture | str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a chart is made and how it is read."""

    draw: Callable[[Tables, View], AnyChart]
    how: str


_FLOW_CHARTS = (
    Recipe(charts.time_sequence, HOW["time_sequence"]),
    Recipe(charts.cwnd, HOW["cwnd"]),
    Recipe(charts.rtt, HOW["rtt"]),
    Recipe(charts.throughput, HOW["throughput"]),
    Recipe(charts.losses, HOW["losses"]),
)

_SELF_CHECK = (
    Recipe(charts.self_check_sequence, HOW["self_check_sequence"]),
    Recipe(charts.self_check_cwnd, HOW["self_check_cwnd"]),
)

_WHAT_IF = (
    Recipe(lambda tables, _: charts.what_if_goodput(tables), HOW["what_if_goodput"]),
    Recipe(lambda tables, _: charts.what_if_difference(tables), HOW["what_if_difference"]),
    Recipe(lambda tables, _: charts.goodput_and_delay(tables), HOW["goodput_and_delay"]),
    Recipe(charts.what_if_cwnd, HOW["what_if_cwnd"]),
)

_SHARING = "Each flow that shared the path; data packets lost for each one sent"

_WHAT_IF_MODEL = (
    Recipe(_WHAT_IF[0].draw, HOW["what_if_goodput_model"]),
    *_WHAT_IF[1:3],
    Recipe(charts.what_if_cwnd, HOW["what_if_cwnd_model"]),
)


def sections(tables: Tables, manifest: Mapping[str, object], *, utc: bool = False) -> list[Section]:
    """Return the sections of the report, in order."""
    views = [replace(view, utc=utc) for view in captured_flows(tables)]
    how = HOW_TO_READ_MODEL if _is_model_alone(tables, views) else HOW_TO_READ
    return [
        _key_numbers(tables, views),
        _self_check(tables, views),
        _what_was(tables, views),
        _what_if(tables, views),
        _unknown(tables),
        Section("how_to_read", "How to read this", parts=list(how)),
        _provenance(tables, manifest),
    ]


def summary(tables: Tables) -> str:
    """Return the summary: the findings of that section, one after another."""
    if said := findings.sentences(findings.findings_of(tables, "summary")):
        return " ".join(said)
    if findings.has_any(tables):
        return "No summary was computed for these tables; what was found stands in its sections below."
    return "No findings were computed for these tables; the charts below show what they hold."


def _is_model_alone(tables: Tables, views: list[View]) -> bool:
    """Return whether the tables hold runs over a model and nothing that was captured."""
    return not views and is_modelled(tables, "what_if")


def _key_numbers(tables: Tables, views: list[View]) -> Section:
    said = findings.findings_of(tables, "key_numbers")
    grid = findings.key_numbers(said, "The captured flow and its path") or _flow_numbers(tables, views)
    none = "These tables hold no flow, so there are no numbers to give."
    if _is_model_alone(tables, views):
        none = "No flow was captured, so there are no numbers of one; those of the runs stand under What if."
    return Section("key_numbers", "Key numbers", parts=[grid or none])


def _flow_numbers(tables: Tables, views: list[View]) -> Grid | None:
    """Return what `flows` itself says of each flow, for reports without findings."""
    names = ("data_segments", "retransmitted_segments", "unique_bytes", "rtt_min_ns", "rtos")
    head = ("Flow", "Data segments", "Retransmitted", "Payload", "Least RTT", "RTOs")
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
    if not rows and _is_model_alone(tables, views):
        section.parts.append("No flow was captured beside which a replay could be held.")
        return section
    channel = "a model of the channel" if is_modelled(tables, "self_check") else "the captured channel"
    grid = findings.by_subject(rows, f"What happened, and each candidate variant replayed over {channel}", "Variant")
    grid = grid or findings.replayed_runs(tables, "self_check", f"Candidate variants replayed over {channel}")
    section.parts += [grid] if grid else []
    return _with_pictures(section, tables, views[0] if views else View(), (_SELF_CHECK, "self-check"))


def _what_was(tables: Tables, views: list[View]) -> Section:
    section = Section("what_was", "What was", findings.sentences(findings.findings_of(tables, "what_was")))
    if not views:
        section.parts.append("No flow was captured or logged: these runs come from a channel model.")
    link = findings.key_numbers(findings.findings_of(tables, "channel"), "What the capture tells of the link")
    section.parts += [link] if link else []
    for view in views[:FLOWS_SHOWN]:
        part = Section(f"flow-{view.flow_id}", f"Flow {flow_name(tables, view)}")
        _with_pictures(part, tables, view, (_FLOW_CHARTS, part.key))
        losses = findings.loss_table(tables, flow_of(tables, view))
        part.parts += [losses] if losses else []
        section.parts.append(part)
    if len(views) > FLOWS_SHOWN:
        section.parts.append(
            f"{len(views) - FLOWS_SHOWN} more flows are here; the {FLOWS_SHOWN} with the most data are shown."
        )
    return section


def _what_if(tables: Tables, views: list[View]) -> Section:
    rows, spread = findings.findings_of(tables, "what_if"), findings.findings_of(tables, "spread")
    section = Section("what_if", "What if", findings.sentences([*rows, *spread]))
    drawn = is_modelled(tables, "what_if")
    mean = "Mean over the seeds" if drawn else "Mean over the resampled channel"
    each = "Each run over the channel that its seed draws" if drawn else "The captured channel replayed as it was"
    grids = (
        findings.by_subject(rows, f"{mean}, its 95 % interval below", "Variant"),
        findings.by_subject(findings.findings_of(tables, "sharing"), _SHARING, "Flow"),
        findings.replayed_runs(tables, "what_if", each),
        findings.by_subject(spread, "Goodput by the way in which the captured losses are replayed", "Variant"),
    )
    section.parts += [grid for grid in grids if grid]
    recipes = _WHAT_IF_MODEL if drawn else _WHAT_IF
    return _with_pictures(section, tables, views[0] if views else View(), (recipes, ""))


def _with_pictures(section: Section, tables: Tables, view: View, recipes: tuple[tuple[Recipe, ...], str]) -> Section:
    said: set[str] = set()
    for recipe in recipes[0]:
        try:
            section.parts.append(Picture(recipe.draw(tables, view), recipes[1], recipe.how))
        except ReportError as error:
            if str(error) not in said:
                section.parts.append(str(error))
            said.add(str(error))
    return section


def _unknown(tables: Tables) -> Section:
    said = findings.unknowns(tables)
    section = Section("unknown", "What is not known", said)
    section.parts += [] if said else ["Nothing was marked as unknown; that is no proof that nothing is."]
    issues = findings.issue_table(tables)
    section.parts.append(issues or "Every record of the inputs could be decoded.")
    return section


_INNER = {"tables", "next_part"}
"""Keys of a workspace's manifest that are its own bookkeeping."""


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
    rest = {key: value for key, value in manifest.items() if key not in captions and key not in _INNER}
    grids.append(findings.mappings(rest, "Workspace"))
    section.parts += [grid for grid in grids if grid]
    if not section.parts:
        section.parts.append("No manifest came with these tables, so where they come from is not known.")
    return section


def flow_name(tables: Tables, view: View) -> str:
    """Return the number of a flow and its two ends, data sender first."""
    row = read_flow(tables, "flows", view, ["data_direction", "a_addr", "a_port", "b_addr", "b_port"])
    if row.is_empty():
        return str(view.flow_id)
    direction, *ends = row.row(0)
    a, b = _end(ends[0], ends[1]), _end(ends[2], ends[3])
    first, second = (a, b) if direction == "a2b" else (b, a)
    return f"{view.flow_id}: {first} to {second}"


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
