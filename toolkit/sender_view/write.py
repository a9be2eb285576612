"""Writes the flows of a capture at the receiver as a capture at their sender would have them: pcapng, headers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.captured_flow import hosts, read_flow, read_flows_on_path
from hindflight.toolkit.errors import CaptureError
from hindflight.toolkit.export.packets import write_packets
from hindflight.toolkit.files import whole_file
from hindflight.toolkit.sender_view.mark import WHAT
from hindflight.toolkit.sender_view.rebuild import SenderView, sender_view
from hindflight.toolkit.sender_view.stamps import is_forward, stamps_of
from hindflight.toolkit.text import name_to_text

if TYPE_CHECKING:
    from hindflight.toolkit.captured_flow import Flow
    from hindflight.toolkit.ingest import Ingest
    from hindflight.toolkit.workspace import Workspace

RECEIVER = "receiver"
"""The vantage of flows that are rebuilt."""
MAX_FLOWS = 64
"""Flows of the same path that are rebuilt, too: those with most data."""


def write_sender_view(workspace: Workspace, flow: Flow, path: Path, *, force: bool = True) -> SenderView:
    """Write `flow` and the other flows of its sender to its receiver to `path`, and return how `flow` was rebuilt.

    Flows that were not captured at their receiver, or have no timestamps, are left out. One pair of hosts has one path
    of ACKs: its delay is half of the shortest round trip of all. CaptureError: the timestamps of `flow` do not show
    when its sender sent. Without `force` HindflightError if `path` may not be replaced (toolkit/files.py).
    """
    import pyarrow as pa

    from hindflight.toolkit.schema import table_from_rows

    stamps = [(flow, stamps_of(flow.tables["segments"], flow.direction))]
    for other in read_flows_on_path(workspace, flow, 0.0, MAX_FLOWS):
        if other.row["vantage"] != RECEIVER or hosts(other.row) != hosts(flow.row):
            continue
        with suppress(CaptureError):
            stamps.append((other, stamps_of(other.tables["segments"], other.direction)))
    ack_delay_ns = min(one.rtt_min_ns for _, one in stamps) / 2
    views = [sender_view(*one, ack_delay_ns) for one in stamps]
    merged = pa.concat_tables([view.segments for view in views])
    if len(views) > 1:
        merged = merged.sort_by("t_ns")
    with whole_file(path, force=force) as temporary:
        write_packets(merged, table_from_rows("flows", [one.row for one, _ in stamps]), WHAT, temporary)
    return views[0]


def flow_at_sender(ingest: Ingest, flow: Flow, path: Path, *, force: bool = True) -> Flow:
    """Return `flow` as its sender's capture would have it; one that was not captured at the receiver as it is.

    What is rebuilt is written to `path` and read into the workspace from there. Raises as `write_sender_view` does.
    """
    import pyarrow.compute as pc

    from hindflight.toolkit.ingest import all_of_it

    if flow.row["vantage"] != RECEIVER:
        return flow
    view = write_sender_view(ingest.workspace, flow, path, force=force)
    (read,) = replace(ingest, span_of=all_of_it)([path])
    rows = ingest.workspace.table("flows", where=pc.field("input_id") == read.input_id).sort_by("flow_id").to_pylist()
    return replace(read_flow(ingest.workspace, _number(flow, view, rows), {read.input_id}), rebuilt=_how(view, path))


def _number(flow: Flow, view: SenderView, rows: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of the flow that `view` is of among `rows`: of those with its ends, the one as long as it.

    A capture that begins with data may have the ends the other way round.
    """
    ends = {(flow.row[f"{end}_addr"], flow.row[f"{end}_port"]) for end in "ab"}
    sent = view.segments.filter(is_forward(view.segments, flow.direction))["payload_bytes"].to_numpy()
    payload_bytes = int(sent.astype("int64").sum())
    same = [
        (abs(row[f"{row['data_direction']}_payload_bytes"] - payload_bytes), number)
        for number, row in enumerate(rows, 1)
        if {(row[f"{end}_addr"], row[f"{end}_port"]) for end in "ab"} == ends
    ]
    return min(same)[1]


def _how(view: SenderView, path: Path) -> str:
    return (
        f"The capture was taken at the receiver. {name_to_text(path.name)} has its packets as the sender sent and "
        f"received them, rebuilt from their timestamps: times are good to about {view.tick_ns / 1e6:g} ms, apart from "
        "the difference of the clocks, for which the shortest round trip is halved. Of "
        f"{view.segments.num_rows} packets {view.lost} were lost before the capture: their times and headers are "
        "inferred, those of lost retransmissions roughly. ACKs that were lost count as arrived. Traffic other than TCP "
        "from the same sender with timestamps is not in it."
    )
