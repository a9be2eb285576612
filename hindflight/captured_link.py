"""What the packets of one captured flow say of its link and of its sender: the channel, and what limited the sender.

Puts the packages together; hindflight.channels extracts, hindflight.replay.scenario finds the limits.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hindflight.channels.extraction.extract import Extraction
    from hindflight.channels.trace import Trace
    from hindflight.replay.scenario.captured_application import SentData
    from hindflight.replay.scenario.limits import Limits
    from hindflight.toolkit.captured_flow import Flow
    from hindflight.toolkit.workspace import Workspace


def extract_channel(
    flow: Flow, workspace: Workspace, receiver: Path | None = None, *, whole_link: bool = False
) -> Extraction:
    """Extract the channel of the flow's data; other traffic in its capture counts. `receiver` is a capture of the same
    time at the data receiver; `whole_link`: the packets of parallel flows are in the table, too. ChannelError if the
    captures do not determine the channel."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from hindflight.channels.extraction.arrivals import arrivals_of
    from hindflight.channels.extraction.cross_traffic import SEGMENT_COLUMNS, cross_traffic_of
    from hindflight.channels.extraction.extract import Context, extract
    from hindflight.channels.extraction.parallel_flows import parallel_flows_of
    from hindflight.toolkit.capture import load_capture

    input_id = flow.row["input_id"]
    here = (pc.field("run_id") == 0) & (pc.field("input_id") == input_id)
    flows = workspace.table("flows", where=here)
    same_input = (pc.field("run_id") == 0) & pc.field("flow_id").isin(flows["flow_id"])
    segments = workspace.table("segments", SEGMENT_COLUMNS, same_input & (pc.field("flow_id") != flow.flow_id))
    events = workspace.table("events", ("kind", "record"), same_input & (pc.field("flow_id") != flow.flow_id))
    others = workspace.table("others", where=pc.field("input_id") == input_id)
    parallel_ids = [row["flow_id"] for row in parallel_flows_of(flow.row, flows)]
    cross_traffic = cross_traffic_of(flow.row, segments, flows, events, others, observed=parallel_ids)
    arrivals = None
    if receiver is not None:
        there = load_capture(receiver)
        arrivals = arrivals_of(flow.row, flow.tables["segments"], there.flows, there.segments)
    theirs = (pc.field("run_id") == 0) & pc.field("flow_id").isin(parallel_ids)
    segments, flows, events = (
        pa.concat_tables([flow.tables[name], workspace.table(name, where=theirs)])
        if parallel_ids
        else flow.tables[name]
        for name in ("segments", "flows", "events")
    )
    extraction = extract(segments, flows, events, flow.flow_id, Context(cross_traffic, arrivals, whole_link))
    return replace(extraction, unknowns=(flow.rebuilt, *extraction.unknowns)) if flow.rebuilt else extraction


def trace_of(extraction: Extraction, workspace: Workspace, flow: Flow) -> Trace:
    """Return the extraction as a trace that says which input and flow it came from, and how that was rebuilt if so."""
    from hindflight.channels.trace import Trace
    from hindflight.toolkit.captured_flow import input_of

    entry = input_of(workspace, flow)
    source = {"name": entry.name, "sha256": entry.sha256, "flow_id": str(flow.flow_id)}
    return Trace(
        channel=extraction.channel,
        estimates=extraction.estimates,
        unknowns=extraction.unknowns,
        counts=extraction.counts,
        source=source | ({"rebuilt": flow.rebuilt} if flow.rebuilt else {}),
        stretches=extraction.stretches,
        bursts_or_outages=extraction.bursts_or_outages,
    )


def sender_limits(source: Path, flow: int | None) -> tuple[Flow, Limits, int]:
    """Return a flow of a capture or workspace, by default the one with most data, what limited its sender, and the time
    of the first TCP segment of the capture in ns.

    HindflightError: the capture was taken at the receiver, or the flow has fewer than two segments or no ACK.
    """
    from hindflight.toolkit.captured_flow import read_flow, run_start_ns
    from hindflight.toolkit.source import open_source

    with open_source(source) as tables:
        chosen = read_flow(tables.workspace, flow)
        return chosen, limits_of_flow(chosen), run_start_ns(tables.workspace)


def limits_of_flow(flow: Flow) -> Limits:
    """Return what limited the sender of a flow; errors as those of `sender_limits`."""
    from hindflight.replay.scenario.captured_application import sent_data
    from hindflight.toolkit.errors import HindflightError, rebuild_hint

    if flow.row["vantage"] == "receiver":
        raise HindflightError(
            f"the capture of flow {flow.number} was taken at the receiver, which does not show when the sender could "
            "have sent",
            rebuild_hint(flow.number),
        )
    sent = sent_data(flow.tables["segments"], flow.direction, int(flow.row[f"{flow.direction}_max_segment_bytes"]))
    if len(sent.t_ns) < 2 or not len(sent.ack_t_ns):
        raise HindflightError(f"flow {flow.number} has fewer than two data segments or no ACK, so nothing shows")
    return limits_of_sent(flow, sent)


def limits_of_sent(flow: Flow, sent: SentData) -> Limits:
    """Return what limited the sender of a flow between its new segments `sent`."""
    from hindflight.replay.scenario.limits import limits_of, new_records, window_edges

    segments, direction = flow.tables["segments"], flow.direction
    rtt_ns = float(flow.row[f"{direction}_rtt_mean_ns"] or 0.0)
    return limits_of(sent, new_records(segments, direction), window_edges(segments, direction), rtt_ns)
