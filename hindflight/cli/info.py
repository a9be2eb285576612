"""`hindflight info CAPTURE`: a first look, in one pass and without writing anything."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindflight.cli.layout import Wide, paragraph, print_fitting
from hindflight.cli.output import AsJson, Outer, endpoint, print_json
from hindflight.cli.times import utc_text

if TYPE_CHECKING:
    from hindflight.toolkit.capture import Summary

TOP_FLOWS = 5


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("info")(info)


def info(
    captures: Annotated[
        list[Path],
        typer.Argument(metavar="CAPTURE...", help="Capture, - for standard input; several are merged in time order."),
    ],
    outer: Outer = False,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Summarise a capture. Shows its time span, link type, largest TCP flows and other traffic."""
    from hindflight.toolkit.capture import CaptureStream

    stream = CaptureStream(captures, input_id=list(range(1, len(captures) + 1)), outer=outer)
    flows: list[dict[str, Any]] = []
    issues: Counter[str] = Counter()
    for _ in stream.batches():
        flows = _largest(flows + stream.flows().to_pylist())
        issues.update(stream.issues()["kind"].to_pylist())
        stream.others()  # taken, so that they do not pile up; the summary counts them
    flows = _largest(flows + stream.flows().to_pylist())
    issues.update(stream.issues()["kind"].to_pylist())
    document = _document(captures, stream.summary(), flows, issues)
    if as_json:
        print_json(document)
    else:
        _print(document, wide)


def _largest(flows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(flows, key=lambda flow: (-_sent_bytes(flow), flow["flow_id"]))[:TOP_FLOWS]


def _sent_bytes(flow: dict[str, Any]) -> int:
    """Payload of the side that sends more, retransmissions included, as `hindflight flows` counts it."""
    return int(flow[f"{flow['data_direction']}_payload_bytes"])


def _document(
    captures: list[Path], summary: Summary, flows: list[dict[str, Any]], issues: Counter[str]
) -> dict[str, Any]:
    start_ns, end_ns = summary.start_ns, summary.end_ns
    from hindflight.toolkit.text import name_to_text

    total = summary.tcp.frame_bytes + sum(kind.frame_bytes for kind in summary.other.values())
    return {
        "capture": " ".join(name_to_text(capture) for capture in captures),
        "file_bytes": summary.bytes_total or summary.bytes_read,
        "compression": summary.compression,
        "link_type": summary.link_type,
        "snaplen_bytes": summary.snaplen_bytes or None,
        "clock_resolution_ns": summary.resolution_ns,
        "start_utc": None if start_ns is None else utc_text(start_ns),
        "end_utc": None if end_ns is None else utc_text(end_ns),
        "seconds": None if start_ns is None or end_ns is None else (end_ns - start_ns) / 1e9,
        "packets": summary.packets,
        "tcp": summary.tcp._asdict(),
        "other": {kind: count._asdict() for kind, count in summary.other.items() if count.packets},
        "tcp_share_of_bytes": summary.tcp.frame_bytes / total if total else None,
        "issues": issues.total(),
        "issues_by_kind": dict(issues.most_common()),
        "top_flows": [_flow(flow) for flow in flows],
    }


def _flow(flow: dict[str, Any]) -> dict[str, Any]:
    a, b = endpoint(flow["a_addr"], flow["a_port"]), endpoint(flow["b_addr"], flow["b_port"])
    way = flow["data_direction"]
    return {
        "flow": flow["flow_id"],
        "from": a if way == "a2b" else b,
        "to": b if way == "a2b" else a,
        "payload_bytes": _sent_bytes(flow),
        "seconds": round((flow["end_ns"] - flow["start_ns"]) / 1e9, 3),
        "retransmitted_segments": flow[f"{way}_retransmitted_segments"],
        "handshake": bool(flow["syn"] and flow["syn_ack"]),
        "captured_at": flow["vantage"],
    }


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


def _issues(document: dict[str, Any]) -> str:
    kinds = ", ".join(f"{kind} {count}" for kind, count in document["issues_by_kind"].items())
    return f"{document['issues']} ({kinds})" if kinds else "none"
