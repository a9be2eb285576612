"""The sections of a report as Markdown and as JSON: the same sentences and tables as the page, charts by their texts.

Does not depend on HTML. Text from a capture is escaped, so that a Markdown viewer shows it and does nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hindflight.reports.findings import Cell, Grid
from hindflight.reports.inert import inert
from hindflight.reports.sections import Figure, Finding, Notice, Part, Section
from hindflight.toolkit.text import printable

_ACTS = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")
_STARTS = re.compile(r"^(\s*)([-+]|\d+[.)])(\s)")


def to_markdown(title: str, generated: str, sections: Sequence[Section], pictures: Mapping[str, str]) -> str:
    """Return a report as Markdown (CommonMark with tables). `pictures` maps keys of charts to paths of their files."""
    lines = [f"# {_text(title)}", ""]
    lines += [f"Hindflight report, {_text(generated)}", ""] if generated else []
    for section in sections:
        lines += _section(section, 2, pictures)
    return "\n".join(lines).rstrip() + "\n"


def _section(section: Section, level: int, pictures: Mapping[str, str]) -> list[str]:
    lines = [*_anchor(section.key), f"{'#' * level} {_text(section.title)}", ""]
    lines += [f"* {_text(sentence)}" for sentence in section.sentences]
    lines += [""] if section.sentences else []
    for part in section.parts:
        lines += _part(part, level, pictures)
    return lines


def _part(part: Part, level: int, pictures: Mapping[str, str]) -> list[str]:
    match part:
        case Section():
            return _section(part, level + 1, pictures)
        case Grid():
            return _grid(part)
        case Notice():
            return [f"> **{_text(part.warning)}**", ""]
        case Finding():
            behind = f" [{_text(part.behind)}](#{part.anchor})" if part.anchor else ""
            return [f"* {_text(part.sentence)}{behind}", ""]
        case Figure():
            shown = _figure(part)
            picture = [f"![{_text(shown['title'])}](<{pictures[part.key]}>)", ""] if part.key in pictures else []
            heading = f"{'#' * (level + 1)} {_text(shown['title'])}"
            return [*_anchor(part.key), heading, "", *picture, _text(shown["description"]), "", _text(part.caption), ""]
    return [_text(part), ""]


def _anchor(key: str) -> list[str]:
    """Return the target of links to `key`: each viewer derives different targets from headings."""
    return [f'<a id="{key}"></a>', ""]


def _grid(grid: Grid) -> list[str]:
    rows = [grid.head, *([_cell(cell) for cell in row] for row in grid.rows)]
    lines = ["| " + " | ".join(_text(cell) for cell in row) + " |" for row in rows]
    return [f"**{_text(grid.caption)}**", "", lines[0], "|" + " --- |" * len(grid.head), *lines[1:], ""]


def _cell(cell: Cell) -> str:
    verdict = f": {cell.verdict}" if cell.verdict else ""
    return f"{cell.text}{f' ({cell.small})' if cell.small else ''}{verdict}"


def _text(text: str) -> str:
    line = _ACTS.sub(r"\\\1", printable(text, keep="").replace("\\n", " "))
    return _STARTS.sub(r"\1\\\2\3", line)


def _figure(figure: Figure) -> dict[str, Any]:
    return {"title": figure.spec["title"]["text"], "description": figure.spec["description"]}


def to_document(title: str, generated: str, sections: Sequence[Section]) -> dict[str, Any]:
    """Return a report as one JSON document: sections with their sentences, tables and charts, in order.

    A chart has its texts and the commands that print its data.
    """
    document: dict[str, Any] = inert(
        {"title": title, "generated": generated, "sections": [_document(section) for section in sections]}
    )
    return document


def _document(part: Part) -> dict[str, Any]:
    match part:
        case Section():
            parts = [*part.sentences, *part.parts]
            return {
                "kind": "section",
                "key": part.key,
                "title": part.title,
                "parts": [_document(each) for each in parts],
            }
        case Grid():
            cells = [[{"text": c.text, "interval": c.small, "verdict": c.verdict} for c in row] for row in part.rows]
            return {"kind": "table", "caption": part.caption, "head": list(part.head), "rows": cells}
        case Notice():
            return {"kind": "notice", "text": part.warning}
        case Finding():
            return {"kind": "finding", "text": part.sentence, "behind": part.anchor}
        case Figure():
            texts = _figure(part)
            return {"kind": "chart", "key": part.key, **texts, "caption": part.caption, "commands": list(part.commands)}
    return {"kind": "sentence", "text": part}
