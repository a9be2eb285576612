"""Reports on workspaces, as files: HTML, Markdown, PDF or JSON, of one workspace or of several compared.

Puts the packages together; hindflight.reports renders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from hindflight.replay.experiment.change import Change
    from hindflight.reports.document import ReportMeta
    from hindflight.reports.exports import Format
    from hindflight.reports.sections import Figure, Section
    from hindflight.toolkit.workspace import Workspace

Form = Literal["html", "md", "pdf", "json"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to write: the report to `path` in `form` (by default that of the suffix of `path`, else HTML), and with
    `charts` every chart as a file of `charts_form` into that folder. `drawn` holds charts of a report on one workspace
    that have been drawn already."""

    path: Path
    form: Form | None = None
    title: str = ""
    utc: bool = False
    charts: Path | None = None
    charts_form: Format = "png"
    force: bool = False
    drawn: Mapping[str, Figure] = field(default_factory=dict)

    @property
    def written_form(self) -> Form:
        """Return the format of the report."""
        suffix = self.path.suffix.lower().removeprefix(".")
        if self.form is not None:
            return self.form
        return suffix if suffix in ("md", "pdf", "json") else "html"  # type: ignore[return-value]


def write_documents(workspaces: Sequence[Workspace], wanted: Wanted) -> list[Path]:
    """Write the report on one workspace, or on several and what changed from the first to the others.

    Return the paths of the charts. ReportError: charts are wanted and there is no data. MachineError: a file cannot be
    written, or Chromium is missing for a PDF. Without `force` HindflightError if a file may not be replaced.
    """
    from hindflight.pdf import check_printer, print_page
    from hindflight.reports.document import json_of, markdown_of, page_of, prepare
    from hindflight.toolkit.files import write_whole
    from hindflight.toolkit.seal import EMPTY_SEAL, sealed
    from hindflight.toolkit.text import name_to_text

    form = wanted.written_form
    if form == "pdf":
        check_printer()
    if form in ("html", "pdf") or wanted.charts_form == "html":
        prepare()
    meta, found = _content(workspaces, wanted)
    files: dict[str, Path] = {}
    if wanted.charts is not None:
        from hindflight.reports.exports import write_figures

        files = write_figures(found, wanted.charts, wanted.charts_form, force=wanted.force)
    if form == "md":
        pictures = {key: name_to_text(path.absolute()) for key, path in files.items() if wanted.charts_form != "html"}
        content = markdown_of(meta, found, pictures)
    elif form == "json":
        content = json_of(meta, found)
    elif form == "pdf":
        content = sealed(print_page(page_of(meta, found)) + f"\n%{EMPTY_SEAL}\n".encode())
    else:
        content = page_of(meta, found)
    write_whole(wanted.path, content, force=wanted.force)
    return list(files.values())


def _content(workspaces: Sequence[Workspace], wanted: Wanted) -> tuple[ReportMeta, list[Section]]:
    from hindflight.flight_findings import flight_findings
    from hindflight.reports.document import sections_of
    from hindflight.reports.sections import Source, combined
    from hindflight.toolkit.schema import TABLES

    added = [flight_findings(workspace) for workspace in workspaces]
    metas = [
        replace(_meta(workspace, wanted), made_by=more.commands)
        for workspace, more in zip(workspaces, added, strict=True)
    ]
    sources = [
        Source({**{name: workspace.scan(name) for name in TABLES}, **more.tables}, meta.workspace, meta.made_by)
        for workspace, meta, more in zip(workspaces, metas, added, strict=True)
    ]
    parts = [sections_of(source.tables, meta, wanted.drawn) for source, meta in zip(sources, metas, strict=True)]
    if len(workspaces) == 1:
        return metas[0], parts[0]
    names = names_of([workspace.path for workspace in workspaces])
    title = wanted.title or f"Hindflight report: {', '.join(names)}"
    return replace(metas[0], title=title), combined(_changes(workspaces, names), names, parts, sources)


_USUAL = "workspace"
"""Folder of the workspace that `whatif`, `demo` and `batch` write: the folder above it says which one it is."""


def names_of(folders: Sequence[Path]) -> list[str]:
    """Return a short name of each workspace, different from all others: the end of its path, without what all have in
    common at their ends; the same folder again is numbered."""
    from hindflight.toolkit.text import name_to_text

    ways = [folder.resolve().parts for folder in folders]
    if all(len(way) > 2 and way[-1] == _USUAL for way in ways):
        ways = [way[:-1] for way in ways]
    length = 1
    while len({way[-length:] for way in ways}) < len(set(ways)):
        length += 1
    names = [name_to_text("/".join(way[-length:])) for way in ways]
    again = [names[:at].count(name) for at, name in enumerate(names)]
    return [f"{name} ({times + 1})" if times else name for name, times in zip(names, again, strict=True)]


def _meta(workspace: Workspace, wanted: Wanted) -> ReportMeta:
    from hindflight.reports.document import ReportMeta
    from hindflight.toolkit.text import name_to_text

    manifest = workspace.manifest
    newest = manifest.commands[-1].versions if manifest.commands else {}
    commands = {c.command: c for c in manifest.commands}  # one that read several inputs is there once for each
    return ReportMeta(
        title=wanted.title or f"Hindflight report: {names_of([workspace.path])[0]}",
        generated=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        manifest={
            "inputs": [
                {"name": i.name, "kind": i.kind, "size_bytes": i.size_bytes, "sha256": i.sha256, "note": i.note}
                for i in manifest.inputs
            ],
            "versions": newest,
            "commands": [{"command": c.command, "time_utc": c.time_utc} for c in commands.values()],
        },
        utc=wanted.utc,
        workspace=name_to_text(workspace.path),
    )


def sentence_of(change: Change, before: str, after: str) -> str:
    """Return what happened to one quantity from workspace `before` to `after`, and whether chance explains it."""
    from hindflight.replay.experiment.change import FLIGHT
    from hindflight.reports.findings import heading

    subject = "the flight" if change.subject == FLIGHT else change.subject
    what = f"{heading(change.metric)} of {subject}"
    (low, high), percent = change.percent_interval, change.percent
    if percent is None or low is None or high is None:
        return f"{what} cannot be compared in {before} and {after}: there is too little data for an interval."
    amount = f"{abs(percent):.{0 if abs(percent) >= 10 else 1}f} %"
    said = f"{what} is {amount} {'higher' if percent > 0 else 'lower'} in {after} than in {before}"
    chance = ", which may be chance" if low <= 0 <= high else ""
    return f"{said}{chance} (95 % interval {low:+.1f} to {high:+.1f} %)."


def _changes(workspaces: Sequence[Workspace], names: Sequence[str]) -> list[tuple[str, list[dict[str, object]]]]:
    """Return what changed from the first workspace to each other, as a caption and rows of `findings`."""
    from hindflight.comparison import changes_between
    from hindflight.reports.findings import heading

    found = []
    for name, other in zip(names[1:], workspaces[1:], strict=True):
        rows: list[dict[str, object]] = []
        for change in changes_between(workspaces[0], other):
            shared = {
                "section": "change",
                "subject": f"{change.subject}: {heading(change.metric)}",
                "verdict": "info",
                "text": "",
            }
            plain = {"low": None, "high": None, "unit": change.unit}
            low, high = change.percent_interval
            rows += [
                {**shared, **plain, "metric": names[0], "value": change.before},
                {**shared, **plain, "metric": name, "value": change.after},
                {**shared, "metric": "change", "unit": "%", "value": change.percent, "low": low, "high": high},
            ]
            if change.metric == "goodput":
                rows[-1]["text"] = sentence_of(change, names[0], name)
        found.append((f"From {names[0]} to {name}: change with its 95 % interval", rows))
    return found
