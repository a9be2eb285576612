"""What the hybrid handover paper leaves open: our defaults, the other readings, and the experiments on what differs."""

from __future__ import annotations

from dataclasses import replace

from hindflight.replay.papers.hybrid_handover.cells import (
    CTCP,
    CUBIC,
    DELAYS,
    FLOWS,
    HYBLA,
    MAX_RUNS,
    PEPSAL,
    RATES_SATELLITE_FIRST,
    RENO,
    SHORT_BREAK_S,
    TRANSMITTED,
    WIRED_QUEUE,
    handovers,
    satellite,
)
from hindflight.replay.papers.hybrid_handover.mechanisms import (
    END_TO_END,
    first_loss,
    flight_at_handover,
    longest_pause,
    longest_pause_with_losses,
    outstanding,
    timer_at_handover,
)
from hindflight.replay.papers.model import Cell, Change, Choice, Experiment, Mechanism, Reading, table

CHOICES: tuple[Choice, ...] = (
    Choice("queue of the emulator", "1000 packets", "not given; netem's default. Known from earlier trials"),
    Choice("CTCP", "receive window of 256 KiB, minimum RTO of 300 ms", "not given. Known from earlier trials"),
    Choice("stack", "Linux 6 with its defaults", "Deviation: a testbed with WEB100 had Linux 2.6; see that reading"),
    Choice("Hybla", "that of Linux", "the text says that Hybla has Hoe's estimate and spacing; Linux has neither"),
    Choice("first connection behind PEPsal", "CUBIC", "not given; the default of Linux"),
    Choice(
        "sequence number",
        "the highest acknowledged in order",
        "the text says of the transmitted packets, and uses it for the amount of data transferred; both were tried",
    ),
    Choice(
        "paths of section 2.2",
        "no losses; a window of 16 KiB (delay rises), a queue of 8 packets (rate falls)",
        "not given; chosen before the first run. The experiments on 001-C28 and C29 have others",
    ),
    Choice("restart time", "longest pause of new data in order at a handover", "not given"),
    Choice("break", "every packet in flight or served is lost; the queue is kept", "not given"),
    Choice("runs", f"at most {MAX_RUNS}, which differ by up to 1 ms of jitter", "not given; the path is hardly random"),
)


Changes = tuple[Change, ...]


def _of_queue(packets: int) -> Changes:
    limit = f"{packets} pkts"
    return (("links.emulator.queue", limit), ("links.emulator.reverse.queue", limit))


def _of_ssthresh(packets: int) -> Changes:
    """Linux senders start with the ssthresh of an earlier connection (route cache); Windows does not keep it."""
    return (
        ("flow.initial_ssthresh", f"{packets} pkts"),
        ("variants.ctcp.stack.initial_ssthresh", "1000000 pkts"),
    )


def _queue(packets: int) -> Reading:
    return Reading(f"queue {packets}", f"the queue of the emulator holds {packets} packets", _of_queue(packets))


def _ssthresh(packets: int) -> Reading:
    text = f"Linux senders begin with an ssthresh of {packets} packets"
    return Reading(f"ssthresh {packets}", text, _of_ssthresh(packets))


_LINUX_2_6 = (
    ("flow.recovery", "fack"),
    ("flow.tail_loss_probe", False),
    ("flow.initial_window", "3 pkts"),
    ("flow.receive_buffer", "80 KiB"),
    ("flow.receive_buffer_max", "3 MiB"),
    ("variants.ctcp.stack.receive_buffer_max", "256 KiB"),
)
_HYBLA_OF_THE_TEXT = (("variants.hybla-linux.hoe_estimate", True), ("variants.hybla-linux.spacing", True))
LINUX_2_6 = Reading(
    "Linux 2.6", "recovery by FACK without probes, initial window of 3, windows up to 3 MiB", _LINUX_2_6
)
SENT = Reading(TRANSMITTED, "a sequence number is the highest transmitted, as the text says")
LITERAL = Reading(
    "literal",
    "Hybla with Hoe's estimate and spacing; CTCP with the stack of the others, since the text gives no other",
    (*_HYBLA_OF_THE_TEXT, ("variants.ctcp.stack", None)),
    literal=True,
)
QUEUE_200, QUEUE_400, QUEUE_1000, EARLY_END = _queue(200), _queue(400), _queue(1000), _ssthresh(20)
SENT_200 = replace(QUEUE_200, name=f"{TRANSMITTED}, queue 200", text="both")
READINGS: tuple[Reading, ...] = (LITERAL, SENT, LINUX_2_6, QUEUE_200)


_EVENTS = "links.emulator.changes"


def _later_ends(cell: Cell) -> Changes:
    """Return the changes that end each break a second later."""
    events = [dict(event) for event in cell.get(_EVENTS, ())]
    for event in events:
        if event.get("outage") is False:
            event["at"] = f"{float(event['at'].removesuffix(' s')) + 1.0:g} s"
    return ((_EVENTS, tuple(table(**event) for event in events)),) if events else ()


SMALL_HYBLA = Reading(
    "Hybla with 256 KiB",
    "the client grants Hybla the window that CTCP has by default; chosen after the first runs",
    (("variants.hybla-linux.stack", table(receive_buffer="256 KiB")),),
)
LONGER = Reading(
    "breaks longer by 1 s",
    "the new link is up a second after the break that is stated; chosen after the first runs",
    _later_ends,
)
QUEUE_1100 = replace(_queue(1100), text="the queue of the emulator holds 1100 packets; chosen after the first runs")
NO_HYSTART: Changes = (("flow.slow_start", "standard"),)


def _queue_lost(cell: Cell) -> Changes:
    """Return the changes that lose what is queued when a link breaks: a fast link without a receiver empties it."""
    events = [dict(event) for event in cell.get(_EVENTS, ())]
    if not any(event.get("outage") for event in events):
        return ()
    for event in events:
        if event.get("outage"):
            event["rate"] = "1 Gbit/s"
    return ((_EVENTS, tuple(table(**event) for event in events)),)


def _pepsal_buffer(size: str) -> Change:
    """Return the change that gives PEPsal a send buffer towards the satellite of this size."""
    return ("proxy.pepsal.stack", table(profile="linux", send_buffer=size))


QUEUE_LOST = Reading(
    "queue lost at a break", "what the queue of the broken link holds is lost; chosen after the first runs", _queue_lost
)
QUEUE_LOST_OLD_CUBIC = Reading(
    "queue lost at a break, CUBIC without HyStart",
    "both: CUBIC of Linux 2.6.28 and before had no HyStart; chosen after the first runs",
    lambda cell: (*NO_HYSTART, *_queue_lost(cell)),
)
OLD_CUBIC_300 = Reading(
    "CUBIC without HyStart, queue 300", "both; chosen after the first runs", (*NO_HYSTART, *_of_queue(300))
)
SMALL_CTCP = Reading(
    "CTCP with 64 KiB, ssthresh 20, queue 50",
    "a receive window of 64 KiB for CTCP, which the queue holds, and both others; chosen after the first runs",
    (
        *_of_ssthresh(20),
        *_of_queue(50),
        (
            "variants.ctcp.stack",
            table(receive_buffer="64 KiB", min_rto="300 ms", initial_ssthresh="1000000 pkts"),
        ),
    ),
)
SMALL_PEPSAL = Reading(
    "PEPsal with 144 KiB, CUBIC without HyStart",
    "a send buffer of PEPsal of 144 KiB, which holds the pipe; both chosen after the first runs",
    (*NO_HYSTART, _pepsal_buffer("144 KiB")),
)
SENT_SMALL_PEPSAL = Reading(
    f"{TRANSMITTED}, PEPsal with 128 KiB, ssthresh 20",
    "all three; chosen after the first runs",
    (*_of_ssthresh(20), _pepsal_buffer("128 KiB")),
)
OVER_RATES = Reading(
    "loss ratios over the path of the rates",
    "which path the test had is not given: that of figure 3 (b); chosen after the first runs",
    measure="rates",
)
DATA_AFTER = Reading(
    "data after the break",
    "difficulties are less data in the 20 s after the break, not a longer pause; chosen after the first runs",
    measure="data",
)
OLD_LINUX_400 = Reading(
    "Linux 2.6 without HyStart, queue 400, sequence number at the end of a phase",
    "CUBIC of Linux 2.6.28 and before had no HyStart, and the figure shows sequence numbers, not what they grow by in "
    "a phase; all chosen after the first runs",
    (*_LINUX_2_6, *NO_HYSTART, *_of_queue(400)),
    measure="position",
)
SENT_EARLY_200 = Reading(
    f"{TRANSMITTED}, ssthresh 20, queue 200",
    "all three; chosen after the first runs",
    (*_of_ssthresh(20), *_of_queue(200)),
)


def _varied(text: str, *more: Reading, also: str = "", mechanism: Mechanism | None = None) -> Experiment:
    """Return the experiment on all claims, with `more` readings that test what we conclude; `also` names them."""
    assumption = "the queue of the emulator, the ssthresh at the start, the age of Linux, the sequence number"
    readings = (QUEUE_200, QUEUE_400, EARLY_END, LINUX_2_6, SENT_200, *more)
    return Experiment(f"{assumption}, {also}" if also else assumption, readings, text, mechanism)


_START = (
    "Without an ssthresh slow start ends all versions alike: what they reach in 20 s depends on how they overflow "
    "the queue. Linux of that time kept the ssthresh of earlier connections to the same host."
)
_QUEUE = (
    "The queue of 1000 packets holds up to 23 s of data, and what lies in it when a packet is lost decides the order."
)
_BEHIND_HOLES = (
    "What follows a hole does not count in order until its retransmission has passed the queue, up to 23 s with 1000 "
    "packets. A version that has such a pause before the end is behind by it; with a shorter queue the pauses are "
    "short, and over before the end. The window of CTCP ends below the queue, so it has none."
)
_CAUGHT_UP = (
    "A version begins the wired phase with what it has outstanding, and catches up with it, so one that the queue "
    "lets have more outstanding grows by more than the link carries in these 20 s."
)
_HYBLA = (
    "Over 500 ms one ACK opens the window of Linux's Hybla to the largest that the receiver allows, so that it "
    "overflows the queue more than CUBIC, whose slow start ends before the first loss (HyStart)."
)
_STEADY = (
    "The queue of 1000 packets holds what CUBIC sends until the end, so CUBIC, too, has no pause, and both arrive at "
    "the rate of the link. A shorter queue overflows, and CUBIC pauses until the retransmissions have passed it."
)
_BREAK = (
    "The pause of CUBIC is the time that its queue of 1000 packets needs before the first retransmission arrives. A "
    "longer break only empties this queue, and Linux resumes within a backed-off timeout."
)
_SENT = (
    "The order of the paper is that of what was transmitted, where the short queue of an emulator cuts the window and "
    "slow start ends early."
)
_BREAKS = "the length of a break, what a break loses"
_LONGER = (
    "What the text calls a break of half a second may not be all of the time without a link: a second more could "
    "explain the times of the paper."
)
_THIN = Reading(
    "window of 3 KiB, no delayed ACKs",
    "a flow that fills no queue at all; chosen after the first runs",
    (("flow.receive_buffer", "3 KiB"), ("flow.delayed_ack", False)),
)
_STARTS = tuple(
    Reading(f"start {start}", "the flow starts so much later; chosen after the first runs", (("flow.start", start),))
    for start in ("0.3 s", "1 s", "1.5 s", "2 s")
)
_FITTING = Reading(
    "window of 20 KiB",
    "14 packets of the 16 that the old network and its queue hold; chosen after the first runs",
    (("flow.receive_buffer", "20 KiB"),),
)
EXPERIMENTS: dict[str, Experiment] = {
    "001-C01": _varied(_BEHIND_HOLES, mechanism=longest_pause((HYBLA, CUBIC, CTCP), satellite())),
    "001-C02": _varied(
        "CTCP loses nothing because its window ends below the queue; early on all are in slow start alike. With a "
        "short queue the others lose packets at once, and CTCP is ahead if its window fits into pipe and queue.",
        SMALL_CTCP,
        also="the window of CTCP",
        mechanism=first_loss((HYBLA, CUBIC, CTCP), satellite(), 0.0),
    ),
    "001-C03": _varied(_QUEUE),
    "001-C04": _varied(_STEADY, mechanism=longest_pause((HYBLA, CUBIC, CTCP), satellite())),
    "001-C05": _varied(_START, mechanism=outstanding(END_TO_END, handovers(DELAYS), 20.0)),
    "001-C06": _varied(_CAUGHT_UP, mechanism=outstanding(END_TO_END, handovers(DELAYS), 20.0)),
    "001-C07": _varied(_HYBLA, SMALL_HYBLA, also="the window of Hybla"),
    "001-C08": _varied(_QUEUE),
    "001-C09": _varied(_QUEUE),
    "001-C10": _varied(
        "The time of the overflow is that at which CUBIC has filled the queue, so its length sets it: a tenth more "
        "could explain it.",
        QUEUE_1100,
    ),
    "001-C11": _varied(
        f"{_BEHIND_HOLES} Over the path whose rate changes CUBIC is last, with any loss ratio.",
        SMALL_HYBLA,
        OVER_RATES,
        also="the window of Hybla, the path",
        mechanism=longest_pause_with_losses(),
    ),
    "001-C12": _varied(f"{_HYBLA} {_SENT}", SENT_EARLY_200, mechanism=longest_pause(FLOWS, satellite())),
    "001-C13": _varied(_HYBLA, mechanism=longest_pause((CTCP, PEPSAL), satellite())),
    "001-C14": _varied(
        f"{_HYBLA} A buffer of PEPsal that holds little more than the pipe prevents the overflow and puts it ahead in "
        "the first phase; in the last one the others also deliver what they queued before, so that growth is not "
        "rank. With a stack of that time and a shorter queue the sequence numbers have the paper's order.",
        SMALL_PEPSAL,
        OLD_LINUX_400,
        also="the buffer of PEPsal, the slow start of CUBIC, what leading means",
        mechanism=outstanding((CTCP, PEPSAL, HYBLA, CUBIC), handovers(DELAYS), 40.0),
    ),
    "001-C15": _varied(
        f"{_CAUGHT_UP} CUBIC has little outstanding, because HyStart ends its slow start. With a queue of 300 packets "
        "and a slow start that only a loss ends, it has the most to catch up.",
        OLD_CUBIC_300,
        also="the slow start of CUBIC",
        mechanism=outstanding((HYBLA, CUBIC, CTCP, PEPSAL), handovers(DELAYS), 20.0),
    ),
    "001-C16": _varied(
        _BEHIND_HOLES,
        mechanism=longest_pause((HYBLA, CUBIC, CTCP, PEPSAL), handovers(RATES_SATELLITE_FIRST)),
    ),
    "001-C17": _varied(
        f"The window of CTCP leaves little in the queue, so its first retransmission arrives soon. {_LONGER}",
        LONGER,
        QUEUE_LOST,
        QUEUE_LOST_OLD_CUBIC,
        also=_BREAKS,
    ),
    "001-C18": _varied(_QUEUE),
    "001-C19": _varied(_BREAK),
    "001-C20": _varied(
        f"{_BREAK} The difficulties are in what follows: after the longer break CUBIC transfers less.",
        DATA_AFTER,
        QUEUE_LOST,
        also=f"what difficulties are, {_BREAKS}",
    ),
    "001-C21": _varied(
        "All versions fill 512 kbit/s over 50 ms within a second, so none can be ahead in order. CUBIC is ahead in "
        "what it transmitted, which its queue holds, where the buffer of PEPsal bounds PEPsal.",
        SENT_SMALL_PEPSAL,
        also="the buffer of PEPsal",
        mechanism=outstanding((HYBLA, CUBIC, CTCP, PEPSAL), handovers(RATES_SATELLITE_FIRST, SHORT_BREAK_S), 20.0),
    ),
    "001-C22": _varied(_LONGER, LONGER, also=_BREAKS),
    "001-C23": _varied(
        "If the queue is lost with the link, no ACK reports it, and only the timeout remains. It follows a round trip "
        "that the queue lengthened to about 10 s, but not that of CTCP, whose window leaves little in the queue. So "
        "the others pause longer by far, though not for 15 s in 20 s of filling.",
        QUEUE_LOST,
        QUEUE_LOST_OLD_CUBIC,
        also="what a break loses, the slow start of CUBIC",
    ),
    "001-C24": _varied(_BREAK),
    "001-C25": _varied(_HYBLA),
    "001-C28": Experiment(
        "the window of the sender",
        (_THIN,),
        "The timer fires if the wait for an ACK is longer than the RTO. The longer delay begins in both directions at "
        "once, so the ACKs of what was sent before come late by half of the change, which is just below the RTO, and "
        "raise it. With a window of two packets no such ACK comes between.",
        timer_at_handover(),
    ),
    "001-C29": Experiment(
        "the window of the sender, the queue, when in its sawtooth the handover finds the sender",
        (_FITTING, QUEUE_1000, *_STARTS),
        "Pipe and queue of the wired network hold 16 packets. Where Reno has more than that outstanding the handover "
        "finds it in a recovery: its losses came just before, and its halved window fits. Where it has not, the window "
        "is one that fits the fast network, and the slow one loses packets of it.",
        flight_at_handover((RENO, CUBIC), WIRED_QUEUE),
    ),
}
