"""Writes the flows of a capture at the receiver as a capture at their sender would have them: pcapng, headers alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hindflight.toolkit.captured_flow import read_flow, read_flows_on_path
from hindflight.toolkit.errors import CaptureError
from hindflight.toolkit.export.packets import write_packets
from hindflight.toolkit.files import whole_file
from hindflight.toolkit.sender_view.rebuild import SenderView, sender_view
from hindflight.toolkit.text import name_to_text

if TYPE_CHECKING:
    from hindflight.toolkit.captured_flow import Flow
    from hindflight.toolkit.ingest import Ingest
    from hindflight.toolkit.workspace import Workspace

RECEIVER = "receiver"
"""The vantage of flows that are rebuilt."""
MAX_FLOWS = 64
"""Flows of the same path that are rebuilt, too: those with most data."""

_ENDS = ("a_addr", "a_port", "b_addr", "b_port")

WHAT = (
    "packets of a capture at the receiver as its sender sent and received them, rebuilt from timestamps, headers alone"
)


def write_sender_view(workspace: Workspace, flow: Flow, path: Path, *, force: bool = True) -> SenderView:
    """Write `flow` and those that share its path to `path`, and return how `flow` was rebuilt.

    Flows that share the path but were not captured at their receiver, or have no timestamps, are left out.
    CaptureError: the timestamps of `flow` do not show when its sender sent. Without `force` HindflightError if `path`
    may not be replaced (toolkit/files.py).
    """
    import pyarrow as pa

    from hindflight.toolkit.schema import table_from_rows

    view = sender_view(flow)
    rows, flows = [view.segments], [flow.row]
    for other in read_flows_on_path(workspace, flow, 0.0, MAX_FLOWS):
        if other.row["vantage"] != RECEIVER:
            continue
        try:
            rows.append(sender_view(other).segments)
        except CaptureError:
            continue
        flows.append(other.row)
    merged = pa.concat_tables(rows)
    if len(rows) > 1:
        merged = merged.sort_by("t_ns")
    with whole_file(path, force=force) as temporary:
        write_packets(merged, table_from_rows("flows", flows), WHAT, temporary)
    return view


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
    ends = [flow.row[name] for name in _ENDS]
    rows = ingest.workspace.table("flows", where=pc.field("input_id") == read.input_id).sort_by("flow_id").to_pylist()
    number = next(at for at, row in enumerate(rows, 1) if [row[name] for name in _ENDS] == ends)
    return replace(read_flow(ingest.workspace, number, {read.input_id}), rebuilt=_how(view, path))


def _how(view: SenderView, path: Path) -> str:
    return (
        f"The capture was taken at the receiver. {name_to_text(path.name)} has its packets as the sender sent and "
        f"received them, rebuilt from their timestamps: times are good to about {view.tick_ns / 1e6:g} ms, apart from "
        "the difference of the clocks, for which the shortest round trip is halved. Of "
        f"{view.segments.num_rows} packets {view.lost} were lost before the capture: their times and headers are "
        "inferred, those of lost retransmissions roughly. ACKs that were lost count as arrived."
    )
