"""What a file or folder is that hindflight reads or writes, and what it holds: one document for each kind.

`hindflight info` prints them. Read docs/commands.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.errors import CaptureError, ChannelError, HindflightError
from hindflight.toolkit.files import plain_os_errors
from hindflight.toolkit.text import endpoint, name_to_text
from hindflight.toolkit.times import utc_text

if TYPE_CHECKING:
    from hindflight.log_summary import LoggedConnection
    from hindflight.toolkit.capture import Summary

Document = dict[str, Any]

TOP_FLOWS = 5
"""Flows of a capture, and connections of a log, that are shown."""

_PARQUET = b"PAR1"
_PAGES = {".html": "report", ".svg": "chart", ".png": "chart"}


def document_of(sources: Sequence[Path], *, outer: bool = False) -> Document:
    """Return what `sources` is and holds: one file or folder, or the files of one capture.

    With `outer`, tunnels stay closed.

    HindflightError: it is nothing that hindflight knows, or damaged.
    """
    from hindflight.toolkit.capture import is_stream

    if len(sources) != 1 or is_stream(sources[0]):
        return _capture(sources, outer)
    (source,) = sources
    known = _described(source)
    if known is not None:
        if outer:
            raise HindflightError(f"--outer is for captures; {source} is not one", "leave it out")
        return known
    try:
        return _capture(sources, outer)
    except CaptureError:
        channel = _channel_or_none(source) if source.is_file() else None
        if channel is None:
            raise
        return channel


def _described(path: Path) -> Document | None:
    """Return the document of a workspace, log, scenario, channel or report; None for what may be a capture.

    HindflightError: it is one of these and damaged.
    """
    if path.is_dir():
        return _workspace(path)
    if not path.is_file():
        return None
    describe = _kind_of(path)
    return None if describe is None else describe(path)


def _channel_or_none(path: Path) -> Document | None:
    """Return the document of a channel in any text format; None if the file is not one."""
    try:
        return _channel(path)
    except (ChannelError, UnicodeDecodeError):
        return None


def _kind_of(path: Path) -> Callable[[Path], Document] | None:
    from hindflight.toolkit.recognition import kind_of

    with plain_os_errors(f"reading {path}"), path.open("rb") as file:
        is_parquet = file.read(len(_PARQUET)) == _PARQUET
    if is_parquet:
        return _parquet
    if path.suffix == ".toml":
        return _model if _is_model(path) else _scenario
    if path.suffix in _PAGES:
        return _page
    kind = kind_of(path)
    return _exported(path) if kind is None else partial(_log, kind=kind)


def _exported(path: Path) -> Callable[[Path], Document] | None:
    """How to describe what `export` wrote; None if `path` is nothing of it."""
    from hindflight.toolkit.export.recognised import exported_rows, graph_title

    title = graph_title(path)
    if title is not None:
        return lambda path: {"kind": "graph", "path": name_to_text(path), "title": title}
    rows = exported_rows(path)
    return None if rows is None else lambda path: {"kind": "tables", "path": name_to_text(path), "rows": rows}


def _workspace(path: Path) -> Document:
    from hindflight.toolkit.schema import TABLES
    from hindflight.toolkit.workspace import Workspace

    opened = Workspace.open(path)
    return {
        "kind": "workspace",
        "path": name_to_text(path),
        "size_bytes": sum(part.size_bytes for parts in opened.manifest.tables.values() for part in parts),
        "inputs": [
            {"input_id": entry.input_id, "kind": entry.kind, "name": entry.name, "note": entry.note}
            for entry in opened.inputs
        ],
        "rows": {name: opened.rows(name) for name in TABLES if opened.rows(name)},
        "commands": [{"time_utc": one.time_utc, "command": one.command} for one in opened.manifest.commands],
    }


def _is_model(path: Path) -> bool:
    """Whether a TOML file has a channel model: a scenario has no `model` at its top."""
    from hindflight.channels.models.parameters import read_toml

    return "model" in read_toml(path)


def _model(path: Path) -> Document:
    from hindflight.channels.models.synth import read_model

    model = read_model(str(path))
    return {"kind": "channel_model", "path": name_to_text(path), "parameters": model.model_dump(mode="json")}


def _scenario(path: Path) -> Document:
    from hindflight.workflow import read_scenario

    scenario = read_scenario(path)
    compare = scenario.compare
    return {
        "kind": "scenario",
        "path": name_to_text(path),
        "name": scenario.name,
        "duration_ns": scenario.duration,
        "nodes": list(scenario.path),
        "variants": list(compare.variants),
        "proxies": list(compare.proxies),
        "captured": None if scenario.captured is None else scenario.captured.input,
        "unknowns": list(scenario.unknowns),
    }


def _parquet(path: Path) -> Document:
    """A channel that hindflight wrote, or another table of Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path)
        keys = metadata.schema.to_arrow_schema().metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise HindflightError(f"{path} cannot be read: {str(error).splitlines()[0]}", "make the file again") from error
    table = keys.get(b"hindflight.table", b"").decode()
    if table == "channel":
        return _channel(path)
    return {
        "kind": "table",
        "path": name_to_text(path),
        "table": table or None,
        "rows": metadata.num_rows,
        "columns": metadata.schema.to_arrow_schema().names,
    }


def _channel(path: Path) -> Document:
    from hindflight.channels.fitting.statistics import statistics
    from hindflight.channels.formats import read_channel

    trace = read_channel(path)
    return {
        "kind": "channel",
        "path": name_to_text(path),
        "packets": trace.packets().num_rows,
        "intervals": trace.intervals().num_rows,
        "statistics": [
            {"section": row.section, "name": row.name, "value": row.value, "unit": row.unit}
            for row in statistics(trace, str(path))
        ],
        "unknowns": list(trace.unknowns),
    }


def _log(path: Path, kind: str) -> Document:
    from hindflight.log_summary import summarise_log

    log = summarise_log(path, kind)
    offset_ns = 0 if log.in_utc else None if log.offset is None else log.offset.offset_ns
    largest = sorted(log.connections, key=lambda each: -each.rows)[:TOP_FLOWS]
    return {
        "kind": "log",
        "path": name_to_text(path),
        "format": log.kind,
        "label": log.label,
        "file_bytes": log.file_bytes,
        "start_utc": None if offset_ns is None else utc_text(log.start_ns + offset_ns),
        "end_utc": None if offset_ns is None else utc_text(log.end_ns + offset_ns),
        "seconds": (log.end_ns - log.start_ns) / 1e9,
        "times_count_from": "1970-01-01 UTC" if log.in_utc else log.clock,
        "clock_offset": None if log.offset is None else str(log.offset),
        "rows": log.rows,
        "connections": len(log.connections),
        "issues": sum(log.issues.values()),
        "issues_by_kind": log.issues,
        "first_issue": "".join(f"record {i.record}, octet {i.offset}: {i.text}" for i in log.first_issues) or None,
        "top_connections": [_logged(each) for each in largest],
        "values": [
            {"name": v.name, "unit": v.unit, "rows": v.rows, "minimum": v.minimum, "maximum": v.maximum}
            for v in log.values
        ],
    }


def _logged(log: LoggedConnection) -> Document:
    there = log.connection
    return {
        "logged_by": None if there is None else endpoint(there.local_addr, there.local_port),
        "peer": None if there is None else endpoint(there.remote_addr, there.remote_port),
        "rows": log.rows,
        "seconds": round((log.end_ns - log.start_ns) / 1e9, 3),
        "sends_data": log.sends,
    }


def _page(path: Path) -> Document:
    from hindflight.toolkit.seal import is_unchanged

    with plain_os_errors(f"reading {path}"):
        size_bytes, unchanged = path.stat().st_size, is_unchanged(path)
    return {
        "kind": _PAGES[path.suffix],
        "path": name_to_text(path),
        "size_bytes": size_bytes,
        "unchanged_since_written": unchanged,
    }


def _capture(captures: Sequence[Path], outer: bool) -> Document:
    from hindflight.toolkit.capture import CaptureStream, check_mergeable

    check_mergeable(captures)
    stream = CaptureStream(captures, input_id=list(range(1, len(captures) + 1)), outer=outer)
    flows: list[dict[str, Any]] = []
    issues: Counter[str] = Counter()
    for _ in stream.batches():
        flows = _largest(flows + stream.flows().to_pylist())
        issues.update(stream.issues()["kind"].to_pylist())
        for take in (stream.others, stream.events, stream.instruments):
            take()  # So that they do not pile up; the summary counts the others.
    flows = _largest(flows + stream.flows().to_pylist())
    issues.update(stream.issues()["kind"].to_pylist())
    return _document(captures, stream.summary(), flows, issues)


def _largest(flows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(flows, key=lambda flow: (-_sent_bytes(flow), flow["flow_id"]))[:TOP_FLOWS]


def _sent_bytes(flow: dict[str, Any]) -> int:
    """Payload of the side that sends more, retransmissions included, as `hindflight flows` counts it."""
    return int(flow[f"{flow['data_direction']}_payload_bytes"])


def _document(
    captures: Sequence[Path], summary: Summary, flows: list[dict[str, Any]], issues: Counter[str]
) -> Document:
    start_ns, end_ns = summary.start_ns, summary.end_ns
    total = summary.tcp.frame_bytes + sum(kind.frame_bytes for kind in summary.other.values())
    return {
        "kind": "capture",
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
