"""What `hindflight info` shows of a kernel log or a flight log."""

from __future__ import annotations

from typing import Any

from hindflight.cli.layout import paragraph, print_fitting


def print_log(document: dict[str, Any], wide: bool) -> None:
    """Print the document of a log, as `describe.document_of` makes it."""
    kinds = ", ".join(f"{kind} {count}" for kind, count in document["issues_by_kind"].items())
    span = f"{document['seconds']:.3f} s"
    if document["start_utc"] is not None:
        span = f"{document['start_utc']} to {document['end_utc']}, {span}"
    lines = {
        "log": f"{document['path']} ({document['file_bytes']} bytes)",
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
