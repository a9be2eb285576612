"""The fixed sentences of a report: how to read each chart, and the section "How to read this"."""

from __future__ import annotations

CHART_CAPTIONS = {
    "stevens": (
        "Each dot is a data segment at its first octet, as in Stevens's graphs: a steady slope is a steady rate, a dot "
        "below the others is a retransmission, and a gap is a time in which nothing was sent."
    ),
    "packet_delay": (
        "For each data packet, its round-trip time minus the propagation delay of both directions at that time (or, if "
        "the link was not extracted, minus the minimum round-trip time): the time that it waited in queues."
    ),
    "queue_occupancy": (
        "What waited at the bottleneck when a packet came to it, packets of other flows included: the delay of the "
        "packet above propagation, times the rate of the link, at the time of its ACK. Near the limit of the queue, "
        "packets are lost to it."
    ),
    "application_delay": (
        "For each new segment, the time from its first transmission, as captured, until the ACK that covers it and all "
        "data before it: what the receiving application waited, and the way back of the ACK. A peak is a lost segment, "
        "which holds back all that follow it. A capture does not show how long data waited before it was sent."
    ),
    "link_state": (
        "The link as extracted from the capture: the rate of its bottleneck and its round-trip propagation delay, each "
        "on its own axis."
    ),
    "flight": (
        "Values of the flight log during the flow, on the same time axis: compare them with the other charts, where an "
        "outage or a step of the delay coincides with a bank or a change of height."
    ),
    "track": (
        "Where the platform was, coloured by what the flow met there: compare the places where it was slow with the "
        "attitude and the altitude at that time."
    ),
    "time_sequence": (
        "Each short bar is a data segment, from its first to its last octet. The steps below the bars are the "
        "cumulative ACK; the steps above them are the right edge of the receive window. The distance between bars and "
        "cumulative ACK is the data in flight. Lost transmissions are the strip along the time axis; zoomed in, a "
        "cross marks each."
    ),
    "cwnd": (
        "The congestion window limits the data in flight. If there is a kernel log, the kernel's value is drawn next "
        "to the value that is inferred from the packets. The bandwidth-delay product is what the link holds without a "
        "queue. The receive window is cut off where it is far above the others."
    ),
    "rtt": (
        "Each dot is the time from a data segment to the ACK that covers it. The lowest values are propagation; what "
        "exceeds them is mostly queueing delay. If the link was extracted from the capture, a dashed line marks the "
        "propagation delay of both directions."
    ),
    "throughput": (
        "Rate of TCP payload sent, and of payload acknowledged in order. While the first exceeds the second, data is "
        "being lost or a queue is filling. A triangle marks a burst of the acknowledged data that is no rate: a "
        "retransmission filled a hole, and the ACK covers what had arrived before."
    ),
    "losses": (
        "Losses by cause, and how the sender recovered from them. The tooltip of a mark shows the evidence; the table "
        "below lists the losses."
    ),
    "self_check_sequence": (
        "Where the lines diverge, the replay transfers data faster or slower than the captured flow did."
    ),
    "self_check_cwnd": (
        "The lines need not coincide at every instant: a sawtooth that starts later stays later. Height and shape "
        "should agree."
    ),
    "what_if_goodput": (
        "Diamond: goodput over the captured channel, replayed unchanged. Grey ticks: goodput over the captured channel "
        "with its blocks resampled, one tick per seed. Dot and bar: median of the ticks, less half of the misfit of "
        "the captured variant, and where the goodput of one flight would lie with 95 % probability. The bar is wider "
        "than the ticks: it also covers the other half and the error of the engine, scaled by recorded flights."
    ),
    "what_if_goodput_mean": (
        "Diamond: goodput over the captured channel, replayed unchanged. Grey ticks: goodput over the captured channel "
        "with its blocks resampled, one tick per seed. Dot and bar: mean of the ticks and its 95 % interval."
    ),
    "what_if_difference": (
        "Both runs of a pair meet the same channel, so its random variation cancels out. An interval that excludes "
        "zero shows a difference that the runs support."
    ),
    "what_if_goodput_model": (
        "The channel is not captured: its model generates another one for each seed. Grey ticks: one run per seed. Dot "
        "and bar: mean of the ticks and, with enough seeds, its 95 % interval."
    ),
    "goodput_and_delay": (
        "One-way delay: from the first transmission of an octet by the data sender to its first arrival at the "
        "receiver's host, through whatever proxies. A variant that fills the queue gains goodput at the cost of delay."
    ),
    "what_if_throughput": (
        "What reached the receiver in order, in equal intervals. With a proxy it is counted on the last connection. A "
        "peak after a dip is a retransmission that filled a hole."
    ),
    "what_if_rtt": (
        "A line that rises steeply and early is a short and steady delay; a long tail to the right is a queue that a "
        "variant fills, or the wait for a timeout."
    ),
    "what_if_queue": (
        "From the round trips of each replay, as for the captured flow: the delay of a packet above propagation, times "
        "the rate of the link, in packets of full size. Choices with a proxy are left out: the round trips of their "
        "sender end at the first one."
    ),
    "what_if_loss_bursts": (
        "Data packets lost in a row, in order of sending. A line that rises at once has single losses, as "
        "a noisy link makes them. One far to the right is a queue that overflows, or an outage; with NewReno, each "
        "packet of a burst takes a round trip to retransmit."
    ),
    "what_if_application_delay": (
        "Time from the write of an application to the reading of its last octet in order: what a user waits for. Each "
        "run has a median and a 95th percentile; a box holds the middle half of the runs, its line all of them, and "
        "the tick is their median."
    ),
    "goodput_over_cache": (
        "Where a line levels off, the cache holds what the connection onward needs: more memory gains nothing. A mark "
        "is the mean over the seeds, its bar the 95 % interval."
    ),
    "goodput_over_loss": (
        "A mark is the mean over the seeds of one workspace, its bar the 95 % interval. All marks of a workspace have "
        "one place: the share of data packets that its channel really took, counted with the proxies that the axis "
        "names. A line that falls early is a sender that takes each loss as congestion."
    ),
    "what_if_proxy": (
        "Octets that a proxy holds: everything in its memory, and the part that it has acknowledged to the sender but "
        "that is not acknowledged onward. A line that stays at its top may be a full cache: compare it with the size "
        "of the cache."
    ),
    "what_if_sharing": (
        "The dots of a row lie together if the flows share the path evenly. Flows of different round-trip times or "
        "variants rarely do."
    ),
    "what_if_cwnd": "One panel per variant and proxy, over the captured channel, replayed unchanged.",
    "what_if_cwnd_model": "One panel per variant and proxy, over the channel of the first seed.",
}
"""How to read each chart, by the name of its function in `charts`; `_model`: where a model generated the channel."""

HOW_TO_ZOOM = (
    "Drag a box over a chart to zoom into it, Shift and drag to move; “Reset zoom” or a double-click shows all again."
)
"""The sentence next to the first chart that zooms."""

_ZOOM = (
    "drag a box to zoom into it, hold Shift and drag to pan, hold Alt or Ctrl and turn the wheel to zoom, double-click "
    "to reset. With the keyboard: Tab to a chart, then arrow keys to pan, plus and minus to zoom, 0 to reset."
)

_COUNTS = (
    "Tables of runs count lost data packets, over all connections into which a proxy splits the flow; lost ACKs and "
    "other packets without data have a separate column. Goodput is the payload delivered in order, divided by the "
    "time to the end of the flow or, if its connection was reset, to the reset."
)

_TIMES = (
    "Times are UTC, or count from the first segment of the flow at the capture point, as the time axis of a chart "
    f"says. The charts of a flow zoom together: {_ZOOM}"
)

_MEASURED = (
    "The 95 % interval of the captured goodput, and that of its mean round-trip time, are not errors of measurement. "
    "They show how far the mean of such a flow could vary, judged by the differences between equal parts of this one. "
    "The mean round-trip time is the mean over these parts; median and percentiles are over all samples. There is no "
    "interval where the flow is too short for eight parts, or where they depend on each other so much that they are "
    "worth no more than three independent ones."
)

HOW_TO_READ = (
    _TIMES,
    "A segment lost to the channel was lost on the link; a segment lost to a queue met a full queue. The replayed "
    "channel contains only the losses of the first kind: the simulated queue drops packets itself.",
    "The self-check replays the captured variant, or the best-matching one if the variant is not known, over the "
    "channel that was extracted from the capture. Its error applies to the whole report: read the what-if results with "
    "that margin.",
    "A what-if result does not predict another flight. It shows how other senders would have performed over this "
    "channel, at the points where the captured flow sampled it. The trace does not contain losses that only a faster "
    "sender would have met.",
    _COUNTS,
    _MEASURED,
    "The 95 % interval of a goodput in the section What if is for one flight. It covers what the capture leaves open, "
    "half of the misfit of the captured variant and the error of the engine. All others there show how far a mean over "
    "the seeds could vary with other samples of the channel's blocks; they do not cover errors of the model.",
)
"""Paragraphs of the section "How to read this"."""

HOW_TO_READ_FLIGHT = (
    _TIMES,
    "A segment lost to the channel was lost on the link; a segment lost to a queue met a full queue. A retransmission "
    "is spurious if an earlier copy had arrived.",
    "Goodput is the payload acknowledged in order, divided by the time from the first data segment to the ACK of the "
    "last.",
    _MEASURED,
    "The interval of a quantity of the link is the range in which it lies with 95 % probability, as far as this "
    "capture shows it.",
)
"""The same for a report on a flight that was not replayed."""

HOW_TO_READ_MODEL = (
    f"Times count from the first data segment of a run. In a chart over time: {_ZOOM}",
    "This report is not based on a capture: paths and channels are those of a scenario. A seed generates the same "
    "channel for every variant and proxy. These tables cannot show how close the model is to a real link.",
    _COUNTS,
    "The 95 % intervals show how far a mean over the seeds could vary with other samples of the channel. They do not "
    "cover errors of the model.",
)
"""The same for a report without a capture."""

NOT_TO_BE_RELIED_ON = (
    "The self-check failed: no replay reproduces the captured flow within its bound. The what-if results below must "
    "not be relied on."
)
"""The notice of a report whose self-check failed."""

SHARED_DIFFERENTLY = (
    "With the other flows replayed as TCP, as the predictions replay them, the captured flow is not reproduced within "
    "the bound of the self-check: the flows share the link differently than in the capture. The predictions of a "
    "single flow are uncertain by that much; their intervals include what the draws have in common with this replay."
)
"""The notice of a report whose self-check failed only with the other flows replayed as TCP."""

NOTHING_REPLAYED = (
    "This report says what happened. What another variant or a proxy would have achieved over this link, and how far "
    "to trust that, `hindflight whatif` on the capture shows."
)
"""The section What if of a report on a flight that was not replayed."""

INTERRUPTIONS = (
    "RTT: median of the samples nearest to the interruption. Goodput: over 8 round trips, at least 1 s, before and "
    "after. Both times count from the end of the interruption: to the next new data acknowledged, and until two "
    "windows in a row carry 90 % of the earlier goodput. “Not known”: the flow ended, or was interrupted again, before "
    "that."
)
"""How to read the table of outages and handovers."""

NO_LINK = "Whether there were any is not known, because the link of the flow is not: see “What is not known”."
"""Said instead of the table of outages."""

PROXY_FAULTS = "Faults of the proxies in the what-if runs, and what each cost"
"""Caption of the table of faults."""

HOW_FAULTS = (
    "Acknowledged, not yet onward: octets that the proxy had acknowledged to the sender, and that the next host had "
    "not acknowledged to the proxy when the fault began; what was on its way then still arrives. Lost: octets that "
    "were acknowledged to the sender and never reached the receiver. Damaged: octets that the receiver read, and that "
    "a fault had changed in the memory of the proxy. Each is the maximum over the runs. Of several faults in a run "
    "only the sum is known, so a range is given."
)
"""How to read it."""

NO_PLACES = "Where they happened is not known: no flight log with positions had been ingested."
"""Said below the table of outages and handovers if it has no places."""

STRETCHES = "The link between its steps, with 95 % intervals; packets are those that it served"
"""Caption of the table of stretches."""
