"""What the hybrid handover paper leaves open: our defaults, the other readings, and the experiments on what differs."""

from __future__ import annotations

from hindflight.replay.papers.hybrid_handover.cells import TRANSMITTED
from hindflight.replay.papers.model import Choice, Experiment, Reading

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
    Choice("restart time", "longest pause of new data in order at a handover", "not given"),
    Choice("break", "every packet in flight or served is lost; the queue is kept", "not given"),
    Choice("runs", "at most 10, which differ by up to 1 ms of jitter", "not given; the path is hardly random"),
)


def _queue(packets: int) -> Reading:
    limit = f"{packets} pkts"
    changes = (("links.emulator.queue", limit), ("links.emulator.reverse.queue", limit))
    return Reading(f"queue {packets}", f"the queue of the emulator holds {packets} packets", changes)


def _ssthresh(packets: int) -> Reading:
    """Linux senders start with the ssthresh of an earlier connection (route cache); Windows does not keep it."""
    changes = (
        ("flow.initial_ssthresh", f"{packets} pkts"),
        ("variants.ctcp.stack.initial_ssthresh", "1000000 pkts"),
    )
    return Reading(f"ssthresh {packets}", f"Linux senders begin with an ssthresh of {packets} packets", changes)


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
READINGS: tuple[Reading, ...] = (LITERAL, SENT, LINUX_2_6, _queue(200))

QUEUES = tuple(_queue(packets) for packets in (100, 200, 400))
STARTS = tuple(_ssthresh(packets) for packets in (20, 42))
_QUEUE = "the queue of the emulator, initial ssthresh, recovery"
_WIDE = (*QUEUES, *STARTS, LINUX_2_6, SENT)


def _varied(text: str) -> Experiment:
    return Experiment(_QUEUE, _WIDE, text)


EXPERIMENTS: dict[str, Experiment] = {
    f"001-C{number:02d}": _varied(text)
    for number, text in {
        1: "",
        2: "",
        3: "",
        4: "",
        5: "",
        6: "",
        7: "",
        8: "",
        9: "",
        10: "",
        11: "",
        12: "",
        13: "",
        14: "",
        15: "",
        16: "",
        17: "",
        18: "",
        19: "",
        20: "",
        21: "",
        22: "",
        23: "",
        24: "",
        25: "",
    }.items()
}
