"""`hindflight info SOURCE`: a first look, in one pass and without writing anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hindflight.cli.layout import Wide, paragraph, print_fitting
from hindflight.cli.log_info import print_log
from hindflight.cli.output import AsJson, Outer, print_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("info")(info)


def info(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE...",
            help="Capture (- for standard input; several are merged in time order), workspace, log, scenario, "
            "channel or report.",
        ),
    ],
    outer: Outer = False,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Summarise a file or a workspace. Of a capture: its time span, link type, largest TCP flows and other traffic."""
    from hindflight.describe import document_of

    document = document_of(sources, outer=outer)
    if as_json:
        print_json(document)
    elif document["kind"] == "capture":
        _print(document, wide)
    elif document["kind"] == "log":
        print_log(document, wide)
    else:
        _print_other(document, wide)


_HEADS = {
    "flow": "flow",
    "from": "sender",
    "to": "receiver",
    "payload_bytes": "payload bytes",
    "seconds": "seconds",
    "retransmitted_segments": "retrans",
    "handshake": "handshake",
    "captured_at": "captured at",
}
"""Column heads, those of `hindflight flows`."""


def _print(document: dict[str, Any], wide: bool) -> None:
    snaplen = document["snaplen_bytes"]
    resolution_ns = document["clock_resolution_ns"]
    clock = {1: "nanoseconds", 1000: "microseconds"}.get(resolution_ns, f"{resolution_ns} ns")
    other = ", ".join(f"{kind} {count['packets']}" for kind, count in document["other"].items())
    share = document["tcp_share_of_bytes"]
    lines = {
        "capture": f"{document['capture']} ({document['file_bytes']} bytes, {document['compression']})",
        "span": f"{document['start_utc']} to {document['end_utc']}, {document['seconds']:.3f} s"
        if document["seconds"] is not None
        else "no packet",
        "clock": clock,
        "link type": document["link_type"],
        "snaplen": "no limit" if snaplen is None else f"{snaplen} bytes",
        "packets": f"{document['packets']}, of them TCP {document['tcp']['packets']}",
        "other traffic": f"{100 * (1 - share):.1f} % of the bytes ({other or 'none'})" if share is not None else "none",
        "issues": _issues(document),
    }
    width = max(map(len, lines))
    for name, text in lines.items():
        paragraph(f"{name:<{width}}  {text}", " " * (width + 2))
    flows = document["top_flows"]
    if flows:
        shown = [{_HEADS[name]: value for name, value in flow.items()} for flow in flows]
        rows = [row | {"handshake": "yes" if row["handshake"] else "no"} for row in shown]
        print_fitting(list(_HEADS.values()), rows, wide)


def _print_other(document: dict[str, Any], wide: bool) -> None:
    """Print a document: plain values by name, then each list of objects as a table."""
    plain = {name: value for name, value in document.items() if not _is_rows(value) and value not in (None, [], {})}
    width = max(map(len, plain))
    for name, value in plain.items():
        paragraph(f"{name:<{width}}  {_in_words(value)}", " " * (width + 2))
    for name, value in document.items():
        if _is_rows(value):
            rows = [{key: _in_words(cell) for key, cell in row.items()} for row in value]
            print_fitting(list(rows[0]), rows, wide, name)


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _in_words(value: Any) -> Any:
    match value:
        case dict():
            return ", ".join(f"{name} {count}" for name, count in value.items())
        case list():
            return ", ".join(map(str, value)) or None
        case bool():
            return "yes" if value else "no"
        case _:
            return value


def _issues(document: dict[str, Any]) -> str:
    kinds = ", ".join(f"{kind} {count}" for kind, count in document["issues_by_kind"].items())
    return f"{document['issues']} ({kinds})" if kinds else "none"
