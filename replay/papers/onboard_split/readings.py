"""What Luglio et al. 2004 leave open: our defaults, the other readings, and experiments on what is not reproduced."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hindflight.replay.papers.model import Cell, Change, Choice, Experiment, Mechanism, Reading, table
from hindflight.replay.papers.onboard_split.cells import (
    BEST,
    SECOND,
    SHADOWED,
    SINGLE,
    WORST,
    at_ber,
    divided,
    goodputs_at_worst,
    shape_of,
)

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
        "cache of several flows",
        "one that they share",
        "not given; that the need is independent of their number supposes one, see the reading that divides it",
    ),
    Choice("street", "heights of Westminster, 20 m wide, running north", "the four streets of Madrid are not given"),
    Choice("shadow", "every packet is lost", "not given; the text also speaks of high bit error rates"),
    Choice(
        "runs",
        "at least 100, and 1000 in the street where no cache is swept",
        "section V has 100 sessions, and 1000 with shadowing; sweeps in the street take 100, for time",
    ),
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
    Reading(
        "half of what is free",
        "the proxy advertises half of what is free, and forwards a third of the cache",
        (("proxy.on-board.advertise", "half_free"),),
    ),
    Reading("cache divided", "several flows divide the cache evenly", divided),
    Reading("low houses", "heights of Guildford: a median of 7.1 m", _streets(("heights", LOW_HOUSES))),
    Reading("other street", "the street runs east", _streets(("azimuth", 90.0))),
    Reading("weak signal", "a bit error rate of 1e-5 in the shadow, no total loss", _streets(("blocked_ber", 1e-5))),
)
BY_NAME = {reading.name: reading for reading in READINGS}
NO_LOSS = table(model="none")
BREAK = Reading("break of slope", "two straight lines fitted to the curve", measure="break of slope")
LONG = Reading("sessions of 310 s", "ten times as long", (("duration", "310 s"),))
LONGER = tuple(
    Reading(f"sessions of {seconds} s", "longer; chosen after the first runs", (("duration", f"{seconds} s"),))
    for seconds in (60, 120)
)
HIGHER_HOUSES = Reading(
    "houses of 13 m",
    "heights with a median of 13 m, between those of the two towns; chosen after the first runs",
    _streets(("heights", (("law", "log_normal"), ("median", "13 m"), ("sigma", 0.27)))),
)
DATA_ALONE = Reading(
    "data lost alone",
    "ACKs are never lost",
    tuple((f"links.{link}.reverse.loss", NO_LOSS) for link in ("up", "down")),
)
FREE = Reading(
    "all that is free",
    "the proxy advertises all free memory and forwards without a limit",
    (("proxy.on-board.advertise", "free"), ("proxy.on-board.forward_window", "unlimited")),
)
FORWARD_FREE = Reading("third in, all on", "no limit onward", (("proxy.on-board.forward_window", "unlimited"),))
FEW_ERRORS = Reading(
    "hardly any errors",
    "a bit error rate of 1e-8, so that nothing waits for a retransmission; chosen after the first runs",
    at_ber(BEST),
)
BOTH_SATELLITES = Reading(
    "split on both satellites",
    "a second proxy divides the link between the satellites from the uplink",
    chains=(("on-board", "first+on-board"),),
)
WORST_ALONE = Reading(
    "BER 1e-6 alone",
    "the figure is of 1e-6, as figure 6; chosen after the first runs",
    at_ber(WORST),
)
BOTH_WORST = replace(
    BOTH_SATELLITES,
    name="split on both satellites, BER 1e-6",
    text="both; chosen after the first runs",
    changes=at_ber(WORST),
)
NO_ERRORS = Reading(
    "no bit errors",
    "nothing waits for a retransmission; chosen after the first runs",
    tuple((f"links.{link}.{way}loss", NO_LOSS) for link in ("up", "down") for way in ("", "reverse.")),
)
_SHORT_FILTER: tuple[Change, ...] = (("variants.westwood.tau", "50 ms"),)
SHORT_FILTER = Reading(
    "filter of 50 ms", "the time constant of Westwood's filter; chosen after the first runs", _SHORT_FILTER
)
LONG_SHORT_FILTER = Reading(
    "filter of 50 ms, sessions of 310 s", "both; chosen after the first runs", (*_SHORT_FILTER, ("duration", "310 s"))
)
SHADOW_GOODPUT = Reading(
    "goodput in the shadow",
    "resilient is who has the higher goodput in the shadow, not who keeps more of it; chosen after the first runs",
    measure="goodput",
)
WITH_SPLIT = Reading("with the split", "both variants behind the proxy", measure="with the split")
_FLOWS = Experiment(
    "whether flows share the cache, and how the agent bounds windows",
    (
        BY_NAME["cache divided"],
        BY_NAME["half of what is free"],
        BREAK,
        FREE,
        FORWARD_FREE,
        DATA_ALONE,
        BY_NAME["ABSE"],
    ),
)
_KNEE = Experiment(
    "what counts as the knee, how the agent bounds windows, lost ACKs and the length of a session",
    (BREAK, FREE, FORWARD_FREE, DATA_ALONE, LONG, BY_NAME["ABSE"], BY_NAME["literal"], BY_NAME["queues of 50 packets"]),
)
_STREETS = Experiment(
    "the street and what its shadow does",
    (BY_NAME["low houses"], BY_NAME["other street"], BY_NAME["weak signal"], BY_NAME["ABSE"], BY_NAME["literal"]),
)
_WINDOWS = Experiment(
    "Westwood's equations, initial ssthresh, queues, lost ACKs and the length of a session",
    (
        BY_NAME["ABSE"],
        BY_NAME["literal"],
        BY_NAME["queues of 50 packets"],
        DATA_ALONE,
        LONG,
    ),
)
TEXTS = {
    "003-C05": (
        "A third of the cache bounds each window, and three pipes are what a connection needs that never waits; "
        "while a loss is repaired, data that follows it stays in the cache, so more is used. With hardly any errors "
        "both variants level off at three pipes."
    ),
    "003-C09": (
        "As for 003-C05: Westwood, whose window is the larger, uses more than 100 packets. With hardly any errors they "
        "are enough."
    ),
    "003-C10": (
        "As for 003-C05: what the repair of losses adds differs with the number of flows. With hardly any errors the "
        "need is three pipes for every number."
    ),
    "003-C12": (
        "Which cache levels off depends on the window that losses leave: far less than the pipe at a BER of 1e-6, "
        "and pipe and queue at 1e-8. Without bit errors it is three pipes for both variants."
    ),
    "003-C15": (
        "At 1 Mbit/s the link caps Westwood; at a BER of 1e-8 both fill it, and neither is ahead. At 20 Mbit/s nothing "
        "does, and its window, the rate times the minimum round trip, gains more from a shorter path than NewReno's. A "
        "shorter filter, which takes bursts for the rate, and longer sessions take this difference away."
    ),
    "003-C20": (
        "The uplink and the link between the satellites stay one connection, with 73 % of the round trip: half "
        "the losses and 0.73 of the round trip give a gain of 1.9 by the square root law. A split on both satellites "
        "triples the goodput of NewReno at a BER of 1e-6; that of Westwood then grows more than sixfold."
    ),
    "003-C22": (
        "Both variants lose goodput with the longer round trip, Westwood more at 20 Mbit/s: where losses limit "
        "it, its window falls to what the path delivered, and regains it by one segment per round trip. With a shorter "
        "filter, which takes bursts for the rate, and longer sessions it grows as the paper says."
    ),
    "003-C24": (
        "While the sender is blocked neither variant sends, and the timeout sets both back to one segment, so about "
        "the same share is left of each; the lead of Westwood stays in goodput."
    ),
    "003-C26": (
        "Each time in the shadow ends in a timeout and slow start, which the shorter loop of a split goes through "
        "sooner: the less of a session is left for transfer, the larger the gain of NewReno. Lower houses hardly "
        "shadow the sender."
    ),
    "003-C29": (
        "A session of 31 s begins with a slow start to the pipe, before the losses bound the window: end to end it has "
        "a larger share in what is transferred than with the split. The longer the session, the smaller this share, "
        "and the larger the gain."
    ),
    "003-C28": (
        "Two satellites leave one connection with most of the round trip. It needs the larger cache, and the gain of "
        "NewReno is smaller; with a split on both satellites it is the reverse. A shadow on the uplink stops what "
        "fills the cache, so it hardly changes what is needed."
    ),
    "003-C37": (
        "Behind the proxy the flow to the farther end has 2.6 times the round trip of the other, end to end 1.8 "
        "times; where losses limit the flows, the split widens the difference. With hardly any errors it narrows it."
    ),
}
"""What we conclude, by claim; the report shows it where the claim is not reproduced."""


def _with(experiment: Experiment, assumption: str, *readings: Reading) -> Experiment:
    """Return an experiment that also varies `assumption`, by `readings`."""
    return replace(
        experiment, assumption=f"{assumption}, {experiment.assumption}", readings=(*readings, *experiment.readings)
    )


_AT_WORST = "kbit/s and timeouts of NewReno per run at 20 Mbit/s, BER 1e-6"
_BY_EXPERIMENT = (
    (_with(_KNEE, "the losses", FEW_ERRORS), ("003-C05", "003-C09")),
    (_with(_KNEE, "the losses", NO_ERRORS), ("003-C12",)),
    (_KNEE, ("003-C18",)),
    (_with(_FLOWS, "the losses", FEW_ERRORS), ("003-C10",)),
    (_WINDOWS, ("003-C01", "003-C02", "003-C03", "003-C14")),
    (
        replace(
            _WINDOWS,
            readings=(*LONGER, *_WINDOWS.readings),
            mechanism=Mechanism(f"{_AT_WORST}, one satellite", partial(goodputs_at_worst, SINGLE)),
        ),
        ("003-C29",),
    ),
    (_with(_WINDOWS, "Westwood's filter", SHORT_FILTER, LONG_SHORT_FILTER), ("003-C15",)),
    (
        _with(_WINDOWS, "Westwood's filter, where it is compared", SHORT_FILTER, LONG_SHORT_FILTER, WITH_SPLIT),
        ("003-C22",),
    ),
    (_with(_WINDOWS, "the losses", FEW_ERRORS), ("003-C37",)),
    (
        _STREETS,
        ("003-C23", "003-C25", "003-C27", "003-C35", "003-C36"),
    ),
    (
        replace(
            _with(_STREETS, "the length of a session", HIGHER_HOUSES, LONG),
            mechanism=Mechanism(f"{_AT_WORST}, sender shadowed", partial(goodputs_at_worst, SHADOWED)),
        ),
        ("003-C26",),
    ),
    (_with(_STREETS, "what resilience is", SHADOW_GOODPUT, WITH_SPLIT, LONG), ("003-C24",)),
    (_with(_STREETS, "where the connection is split", BOTH_SATELLITES), ("003-C28",)),
    (
        Experiment(
            "where the connection is split, the losses, Westwood's equations, initial ssthresh, length of a session",
            (BOTH_SATELLITES, WORST_ALONE, BOTH_WORST, BY_NAME["ABSE"], BY_NAME["literal"], DATA_ALONE, LONG),
        ),
        ("003-C20",),
    ),
)
EXPERIMENTS: dict[str, Experiment] = {
    claim_id: replace(experiment, text=TEXTS.get(claim_id, ""))
    for experiment, claim_ids in _BY_EXPERIMENT
    for claim_id in claim_ids
}
