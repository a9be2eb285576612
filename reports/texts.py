"""The report's standing sentences: how each chart is read, and the section "How to read this". Knows nothing."""

from __future__ import annotations

HOW = {
    "time_sequence": (
        "Each short bar is a data segment, from its first octet to its last. The steps below the bars are what the "
        "receiver had acknowledged, the steps above them how far its window let the sender go; what lies between bars "
        "and acknowledgements was in flight. Crosses mark the transmissions that were lost."
    ),
    "cwnd": (
        "How much the sender allowed itself to have in flight. Where there is a kernel log, the kernel's own value "
        "stands beside the one inferred from the packets."
    ),
    "rtt": (
        "Each dot is the time from a segment to the ACK that covers it. The floor is propagation; what stands above "
        "it is mostly queueing. Where the link was worked out from the capture, a dashed line marks the propagation "
        "delay, both ways."
    ),
    "throughput": (
        "What left the sender, and what arrived in order. Where the first stays above the second, data was lost or a "
        "queue was filling."
    ),
    "losses": (
        "Losses by what took them, and what the sender did about them. Each mark's tooltip gives the evidence, and the "
        "table below the same in words."
    ),
    "self_check_sequence": (
        "Where the two lines part, the replay carries data faster or slower than the real flow did."
    ),
    "self_check_cwnd": (
        "The two need not meet at each instant: a sawtooth that begins a little late stays late. Height and shape "
        "should agree."
    ),
    "what_if_goodput": (
        "Diamond: over the captured channel as it was. Grey ticks: over blocks of that channel in another order, one "
        "tick per seed; the dot and the bar are their mean and its 95 % interval."
    ),
    "what_if_difference": (
        "The two runs of a pair meet the same channel, so what the channel happened to do cancels out. An interval "
        "that stays clear of zero is a difference that this evidence supports."
    ),
    "what_if_goodput_model": (
        "Nothing of this channel was captured: its model is drawn anew for each seed. Grey ticks: one run per seed; "
        "the dot is their mean, the bar its 95 % interval where there are seeds enough."
    ),
    "goodput_and_delay": "A high rate is worth less when it is bought with a full queue.",
    "what_if_cwnd": "One panel for each variant and proxy, over the captured channel as it was.",
    "what_if_cwnd_model": "One panel for each variant and proxy, over the channel that the first seed draws.",
}
"""How each chart is read, by the name of its function in `charts`; `_model` where no channel was captured."""

_ZOOM = (
    "drag to move, hold Alt or Ctrl and turn the wheel to zoom, double-click to see everything again. By "
    "keyboard: Tab to a chart, then the arrow keys move, plus and minus zoom, 0 shows everything."
)

_COUNTS = (
    "Where runs are counted one by one, losses are data packets, of all connections into which a proxy splits the "
    "flow; lost ACKs and other packets without data have a count of their own. Goodput is over the time to the flow's "
    "end; where its connection was reset, to the reset."
)

HOW_TO_READ = (
    "Times count from the first segment of the flow, at the place where it was captured. The charts of one flow zoom "
    f"together: {_ZOOM}",
    "A segment lost to the channel vanished on the link; one lost to a queue found the queue full. Only losses to the "
    "channel are part of the channel that is replayed: the replay has a queue of its own, which drops what it must.",
    "The self-check replays the variant that flew, or the nearest where that is not known, over the channel that was "
    "extracted from the capture. What it misses there it will miss everywhere in this report: read the "
    "what-if with that margin.",
    "A what-if does not predict another flight. It says what other senders would have met on this channel, at the "
    "places where this flow met it. Losses that only a faster sender would have provoked are not in the trace.",
    _COUNTS,
    "The 95 % intervals say how far a mean over the seeds could move with other draws of the channel's blocks. They "
    "do not cover what the model leaves out.",
)
"""Paragraphs of the section "How to read this"."""

HOW_TO_READ_MODEL = (
    f"Times count from the first data segment of a run. In a chart over time: {_ZOOM}",
    "No capture stands behind this report: paths and channels are those of a scenario. The same seed draws the same "
    "channel for every variant and proxy. How near that comes to a real link these tables cannot say.",
    _COUNTS,
    "The 95 % intervals say how far a mean over the seeds could move with other draws of the channel. They do not "
    "cover what the model leaves out.",
)
"""The same where nothing was captured."""
