"""What Luglio et al. 2004 leave open: our defaults, the other readings, and experiments on what is not reproduced."""

from __future__ import annotations

from hindflight.replay.papers.model import Cell, Change, Choice, Experiment, Reading
from hindflight.replay.papers.onboard_split.cells import SECOND, shape_of

CHOICES: tuple[Choice, ...] = (
    Choice("Westwood", "the version of 2001 (westwood-bwe) with NewReno recovery", "the text has no equation"),
    Choice(
        "queue of a link",
        "50 packets at 1 Mbit/s and 1000 at 20 Mbit/s; 100 and 2000 over two satellites",
        "not given; above the pipe end to end, known from earlier trials to be needed at 20 Mbit/s",
    ),
    Choice("initial ssthresh", "the pipe end to end: 42 or 833 packets, 76 or 1529", "not given; as for haps-split"),
    Choice("packet", "1460 B of data and 40 B of headers", "the text gives 1500 B"),
    Choice(
        "advertised window", "a third of the cache, at most what is free", "the text: less as the cache fills, not how"
    ),
    Choice(
        "cache of several flows", "divided evenly", "not given whether it is shared; the engine has no shared memory"
    ),
    Choice("street", "heights of Westminster, 20 m wide, running north", "the four streets of Madrid are not given"),
    Choice("shadow", "every packet is lost", "not given; the text also speaks of high bit error rates"),
    Choice("large cache", "200 packets at 1 Mbit/s and 4000 at 20 Mbit/s; twice that over two satellites", "not given"),
    Choice("knee", "where goodput reaches 95 % of that with the large cache", "not given; as in `hindflight place`"),
)


def _queues(pkts: int) -> Reading:
    def changes(cell: Cell) -> tuple[Change, ...]:
        links = ("up", "isl", "down") if shape_of(cell.scenario) == SECOND else ("up", "down")
        return tuple((f"links.{link}.{way}queue", f"{pkts} pkts") for link in links for way in ("", "reverse."))

    return Reading(f"queues of {pkts} packets", f"every link has a queue of {pkts} packets at either rate", changes)


def _streets(*changes: tuple[str, object]) -> tuple[Change, ...]:
    return tuple((f"links.{link}.channel.{key}", value) for link in ("shadow", "shadow-west") for key, value in changes)


LOW_HOUSES = (("law", "log_normal"), ("median", "7.1 m"), ("sigma", 0.27))
READINGS: tuple[Reading, ...] = (
    Reading(
        "literal",
        "nothing limits a window: no initial ssthresh",
        (("flow.initial_ssthresh", None), ("flows.short.initial_ssthresh", None)),
        literal=True,
    ),
    Reading("ABSE", "Westwood as in haps-split", (("variants.westwood.variant", "westwood-abse"),)),
    _queues(50),
    _queues(1000),
    Reading(
        "acknowledged after forwarding",
        "the proxy acknowledges a packet when it has left once (section III)",
        (("proxy.on-board.acknowledge", "after_forwarding"),),
    ),
    Reading("low houses", "heights of Guildford: a median of 7.1 m", _streets(("heights", LOW_HOUSES))),
    Reading("other street", "the street runs east", _streets(("azimuth", 90.0))),
    Reading("weak signal", "a bit error rate of 1e-5 in the shadow, no total loss", _streets(("blocked_ber", 1e-5))),
)
EXPERIMENTS: dict[str, Experiment] = {}
