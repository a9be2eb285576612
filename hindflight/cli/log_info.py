"""What `hindflight info` shows of a kernel log or a flight log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.cli.layout import paragraph, print_fitting
from hindflight.cli.output import endpoint, print_json
from hindflight.cli.times import utc_text

if TYPE_CHECKING:
    from hindflight.toolkit.log_summary import LogSummary

TOP_CONNECTIONS = 5


def show_log(path: Path, kind: str, wide: bool, as_json: bool) -> None:
    """Print what the log in `path` holds. LogError: it holds no whole record."""
    from hindflight.toolkit.log_summary import summarise_log
    from hindflight.toolkit.text import name_to_text

    document = _document(name_to_text(path), summarise_log(path, kind))
    if as_json:
        print_json(document)
    else:
        _print(document, wide)


def _document(name: str, log: LogSummary) -> dict[str, Any]:
    offset_ns = 0 if log.in_utc else None if log.offset is None else log.offset.offset_ns
    known = offset_ns is not None
    largest = sorted(log.connections, key=lambda each: -each.rows)[:TOP_CONNECTIONS]
    return {
        "log": name,
        "kind": log.kind,
        "label": log.label,
        "file_bytes": log.file_bytes,
        "start_utc": utc_text(log.start_ns + (offset_ns or 0)) if known else None,
        "end_utc": utc_text(log.end_ns + (offset_ns or 0)) if known else None,
        "seconds": (log.end_ns - log.start_ns) / 1e9,
        "times_count_from": "1970-01-01 UTC" if log.in_utc else log.clock,
        "clock_offset": None if log.offset is None else str(log.offset),
        "rows": log.rows,
        "connections": len(log.connections),
        "top_connections": [
            {
                "logged by": "-"
                if c.connection is None
                else endpoint(c.connection.local_addr, c.connection.local_port),
                "peer": "-" if c.connection is None else endpoint(c.connection.remote_addr, c.connection.remote_port),
                "rows": c.rows,
                "seconds": round((c.end_ns - c.start_ns) / 1e9, 3),
                "sends data": c.sends,
            }
            for c in largest
        ],
        "values": [
            {"name": v.name, "unit": v.unit, "rows": v.rows, "minimum": v.minimum, "maximum": v.maximum}
            for v in log.values
        ],
        "issues": sum(log.issues.values()),
        "issues_by_kind": log.issues,
        "first_issue": None
        if not log.first_issues
        else {
            "record": log.first_issues[0].record,
            "offset": log.first_issues[0].offset,
            "text": log.first_issues[0].text,
        },
    }


def _print(document: dict[str, Any], wide: bool) -> None:
    kinds = ", ".join(f"{kind} {count}" for kind, count in document["issues_by_kind"].items())
    span = f"{document['seconds']:.3f} s"
    if document["start_utc"] is not None:
        span = f"{document['start_utc']} to {document['end_utc']}, {span}"
    lines = {
        "log": f"{document['log']} ({document['file_bytes']} bytes)",
        "kind": document["label"],
        "span": span,
        "times": f"count from {document['times_count_from']}",
        "rows": str(document["rows"]),
        "issues": f"{document['issues']} ({kinds})" if kinds else "none",
    }
    if document["clock_offset"]:
        lines["times"] += f"; {document['clock_offset']}"
    first = document["first_issue"]
    if first is not None:
        lines["first issue"] = f"record {first['record']}, octet {first['offset']}: {first['text']}"
    width = max(map(len, lines))
    for name, text in lines.items():
        paragraph(f"{name:<{width}}  {text}", " " * (width + 2))
    if document["top_connections"]:
        rows = [row | {"sends data": "yes" if row["sends data"] else "no"} for row in document["top_connections"]]
        print_fitting(list(rows[0]), rows, wide)
    if document["values"]:
        rows = [{name: "-" if value is None else value for name, value in row.items()} for row in document["values"]]
        print_fitting(list(rows[0]), rows, wide)
