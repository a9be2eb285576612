"""The report: one HTML file, written from tables and a manifest, that opens without a network.

The report computes nothing. Sentences, statistics and verdicts are rows of the table `findings`, by section:

    summary        sentences of the section "Findings"; `metric` is what each is about: goodput, losses, interruptions,
                   self_check or what_if, whose chart it is linked to
    interruptions  one subject per outage or path change; metrics become columns
    proxy_faults   one subject per choice of the what-if and fault of a proxy; metrics become columns; shown there too
    recommendation sentences: what to do, then how sure that is
    key_numbers    one row per number: metric, value, low, high, unit; `text` says how it was measured
    self_check     subject `capture` is the captured flow; then one subject per candidate variant, best match first;
                   metrics become columns; the overlay charts draw the first candidate whose run has time series
    channel        one row per estimate of the link, like key_numbers; shown under "What happened"
    stretches      one subject per stretch of the link between two of its steps; metrics become columns; shown there too
    what_happened  sentences about the captured flows (`what_was` in older workspaces)
    what_if        one subject per variant and proxy, as `run_subject` spells it; metrics become columns. `goodput`
                   [bit/s] (mean and 95 % interval over the seeds) and `goodput_difference` [bit/s] (paired with the
                   reference, which has none) are also drawn; `goodput_gain` [%] is marked `more`, `less` or
                   `undecided` by its interval; INTERVAL_METRIC is left out
    sensitivity    goodput by the method that replays the captured losses
    sharing        one subject per flow that shared the path of each what-if subject; metrics become columns
    setup          one row per flow and stack parameter that differs from its profile; shown under "Provenance"
    unknown        sentences about what is not known; a row of any section with verdict `unknown` is listed there too

`metric` is empty for a finding that is only a sentence. docs/tables.md describes the tables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hindflight.reports import page
from hindflight.reports.bundle import prepare
from hindflight.reports.frames import Tables
from hindflight.reports.markdown import to_document, to_markdown
from hindflight.reports.sections import Figure, Section, Source, figures_of, sections
from hindflight.toolkit.files import write_whole
from hindflight.toolkit.seal import EMPTY_SEAL, SEAL_NOTE, sealed
from hindflight.toolkit.text import escape_json

__all__ = [
    "ReportMeta",
    "figures_ahead",
    "json_of",
    "markdown_of",
    "page_of",
    "prepare",
    "sections_of",
    "write_report",
]


@dataclass(frozen=True, slots=True)
class ReportMeta:
    """Title, time and provenance of a report.

    `generated` is the time of writing as text; this package reads no clock. `manifest` fills the section Provenance:
    `inputs` (a list of mappings with name, sha256, …), `versions` (a mapping), `commands` (a list) and `parameters` (a
    list of mappings, one per parameter that differs from its default); other keys are listed as they are. With `utc`,
    the time axes of captured flows show UTC. `workspace` is the path of the tables, for the commands next to charts;
    `made_by` has, for a table that is not in it, the command that makes it.
    """

    title: str
    generated: str = ""
    manifest: Mapping[str, object] = field(default_factory=dict)
    utc: bool = False
    workspace: str = "WORKSPACE"
    made_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def write_report(tables: Tables, meta: ReportMeta, path: str | os.PathLike[str], *, force: bool = True) -> Path:
    """Write a report of `tables` to `path` as HTML and return the path. The file is written completely or not at all.

    `tables` maps names of toolkit/schema to tables: flows, segments, instruments, events, channel, runs, findings and
    issues. Any may be missing. Raises MachineError if the file cannot be written. Without `force`, raises
    HindflightError if the file must not be replaced (toolkit/files.py).
    """
    prepare()
    target = Path(path)
    write_whole(target, page_of(meta, sections_of(tables, meta)), force=force)
    return target


def sections_of(tables: Tables, meta: ReportMeta, drawn: Mapping[str, Figure] | None = None) -> list[Section]:
    """Return the sections of the report of `tables`; `drawn` holds what `figures_ahead` has drawn of it."""
    return sections(Source(tables, meta.workspace, meta.made_by, drawn=drawn or {}), meta.manifest, utc=meta.utc)


def figures_ahead(tables: Tables, workspace: str) -> dict[str, Figure]:
    """Return the charts of the report of `tables`, with times in seconds, by key, before all of its findings are known:
    no chart needs those of the sections `sensitivity` and `recommendation`. `workspace` is that of ReportMeta."""
    figures = figures_of(sections(Source(tables, workspace), {}))
    for figure in figures.values():
        _ = figure.spec  # Half of the work.
    return figures


def page_of(meta: ReportMeta, found: list[Section]) -> bytes:
    """Return sections as one HTML file with its digest."""
    return sealed(page.render(meta.title, meta.generated, found).encode())


def markdown_of(meta: ReportMeta, found: list[Section], pictures: Mapping[str, str]) -> bytes:
    """Return sections as Markdown with its digest; `pictures` maps keys of charts to paths."""
    text = to_markdown(meta.title, meta.generated, found, pictures)
    return sealed(f"{text}\n<!-- {SEAL_NOTE} -->\n".encode())


def json_of(meta: ReportMeta, found: list[Section]) -> bytes:
    """Return sections as a JSON document with its digest."""
    document = {**to_document(meta.title, meta.generated, found), "seal": EMPTY_SEAL}
    return sealed((escape_json(json.dumps(document, indent=1, ensure_ascii=False)) + "\n").encode())
