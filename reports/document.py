"""The report: one HTML file that opens without a network, from tables and a manifest.

Shows, computes nothing: statements, statistics and verdicts come in the table `findings`, by section:

    summary      sentences for the paragraph at the top
    key_numbers  one row per number: metric, value, low, high, unit; `text` says how it was found
    self_check   subject `capture` for what happened, then one subject per candidate variant, nearest first; metrics
                 become columns; the overlay charts draw the first candidate whose run kept its series
    channel      one row per estimate of the link, like key_numbers; stands in "What was"
    what_was     sentences on the captured flows
    what_if      subject as `run_subject` spells it; metrics become columns. `goodput` [bit/s] (mean and
                 95 % interval over the seeds) and `goodput_difference` [bit/s] (paired with the reference, which has
                 none itself) are drawn too; `goodput_gain` [%] wears `more`, `less` or `undecided` by its interval
    sharing      one subject per flow that shared the path of each what-if subject; metrics become columns
    setup        one row per flow and stack parameter that differs from its profile; stands in "Provenance"
    unknown      sentences on what is not known; a verdict `unknown` in any section is listed there as well

`metric` may be empty for a finding that is only a sentence. Read docs/tables.md for the tables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hindflight.reports import page
from hindflight.reports.bundle import prepare
from hindflight.reports.frames import Tables
from hindflight.reports.sections import sections, summary
from hindflight.toolkit.files import write_whole
from hindflight.toolkit.seal import sealed

__all__ = ["ReportMeta", "prepare", "write_report"]


@dataclass(frozen=True, slots=True)
class ReportMeta:
    """What a report says of itself.

    `manifest` feeds the section Provenance: `inputs` (a list of mappings: name, sha256, …), `versions` (a mapping),
    `commands` (a list), `parameters` (a list of mappings: those that differ from their defaults); other keys follow
    as they are. `generated` is the time of writing as text, since this room reads no clock. `utc` puts UTC on the
    time axes of captured flows.
    """

    title: str
    generated: str = ""
    manifest: Mapping[str, object] = field(default_factory=dict)
    utc: bool = False


def write_report(tables: Tables, meta: ReportMeta, path: str | os.PathLike[str], *, force: bool = True) -> Path:
    """Write the report on `tables` to `path`, whole or not at all, and return the path.

    Tables are those of toolkit/schema by name: flows, segments, instruments, events, channel, runs, findings,
    issues; any may be missing. MachineError where the file cannot be written. Without `force` HindflightError if the
    file may not be replaced (toolkit/files.py).
    """
    prepare()  # the script is made while the charts are
    text = page.render(meta.title, summary(tables), meta.generated, sections(tables, meta.manifest, utc=meta.utc))
    whole = Path(path)
    write_whole(whole, sealed(text.encode()), force=force)
    return whole
