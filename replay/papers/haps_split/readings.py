"""What Palazzi et al. 2005 leave open: our defaults, the other readings, and experiments on what is not reproduced."""

from __future__ import annotations

from dataclasses import replace

from hindflight.replay.papers.haps_split.cells import windows_of_long_connection
from hindflight.replay.papers.model import Cell, Change, Choice, Experiment, Mechanism, Reading, table

NO_LOSS = table(model="none")
CHOICES: tuple[Choice, ...] = (
    Choice(
        "packet losses", "0.1 % on T-S and on S-G", "the text gives 0.1 % between T and G; known from earlier trials"
    ),
    Choice(
        "losses of the first links", "on W-U alone", "the text names W-U in one place, W-T and the whole path in others"
    ),
    Choice("lost ACKs", "as likely as lost data", "not given; the error model of ns-2 loses every packet alike"),
    Choice(
        "initial ssthresh",
        "42 packets",
        "not given; known from earlier trials, in which no limit makes both variants alike",
    ),
    Choice("time constant of Westwood's filter", "adaptive", "Deviation: the text assumes it fixed and gives no value"),
    Choice(
        "recovery of Westwood", "NewReno", "not given; the text compares with NewReno, the authors' later paper says so"
    ),
    Choice("packet", "1460 B of data and 40 B of headers", "the text gives 1500 B"),
    Choice("knee", "where goodput reaches 95 % of that with 250 packets", "not given; as in `hindflight place`"),
)


def _every_hop(cell: Cell) -> tuple[Change, ...]:
    per = cell.get("links.W-U.loss.per", 0.01)
    both = table(model="bernoulli", per=per)
    return (("links.U-T.loss", both), ("links.U-T.reverse.loss", both))


def _all_links(cell: Cell) -> tuple[Change, ...]:
    per = cell.get("links.W-U.loss.per", 0.01)
    changes: list[Change] = [*_every_hop(cell)]
    for link in ("T-S", "S-G"):
        changes += [(f"links.{link}.loss.per", per), (f"links.{link}.reverse.loss.per", per)]
    return tuple(changes)


def _larger_file(cell: Cell) -> tuple[Change, ...]:
    return (("flow.size", f"{5 * 2**20} B"),) if cell.get("flow.size") is not None else ()


LINKS = ("W-U", "T-S", "S-G")
READINGS: tuple[Reading, ...] = (
    Reading(
        "literal",
        "the time constant of Westwood's filter is fixed, at the 0.5 s of Westwood's first paper",
        (("variants.westwood.tau", "fixed"), ("variants.westwood.tau_fixed", "500 ms")),
        literal=True,
    ),
    Reading(
        "T-G once",
        "0.1 % once between T and G",
        (("links.S-G.loss", NO_LOSS), ("links.S-G.reverse.loss", NO_LOSS)),
    ),
    Reading("every hop", "the PER of W-U also on U-T", _every_hop),
    Reading("all links", "the PER of W-U on every link between W and G", _all_links),
    Reading(
        "data lost alone",
        "ACKs are never lost",
        tuple((f"links.{link}.reverse.loss", NO_LOSS) for link in LINKS),
    ),
    Reading("no initial ssthresh", "slow start without a limit", (("flow.initial_ssthresh", None),)),
    Reading(
        "interval not clamped", "T_k without the bounds T_min and T_max", (("variants.westwood.clamp_interval", False),)
    ),
    Reading("5 MiB", "the file has 5 * 2^20 B", _larger_file),
    Reading("Sack1", "recovery of Westwood by SACK", (("variants.westwood.stack", None),)),
)


def _every_queue(pkts: int) -> tuple[Change, ...]:
    links = ("W-U", "U-T", "T-S", "S-G")
    return tuple((f"links.{link}.{way}queue", f"{pkts} pkts") for link in links for way in ("", "reverse."))


def _caches(*caches: int) -> tuple[Reading, ...]:
    return tuple(
        Reading(f"{cache} pkts", f"a cache of {cache} packets", (("proxy.truck.receive_buffer", f"{cache} pkts"),))
        for cache in caches
    )


FREE = Reading("all that is free", "the proxy advertises all free memory", (("proxy.truck.advertise", "free"),))
QUEUES = tuple(Reading(f"queues of {pkts} packets", "at every node", _every_queue(pkts)) for pkts in (20, 100, 200))
THIRD_ONWARD = Reading(
    "a third onward",
    "the proxy has a third of its cache in flight at most, as the agent of onboard-split; chosen after the first runs",
    (("proxy.truck.forward_window", "third"),),
)
THIRD_ONWARD_BREAK = replace(
    THIRD_ONWARD,
    name="a third onward, break of slope",
    text="both; chosen after the first runs",
    measure="break of slope",
)
NO_LOSS_FREE = Reading(
    "no losses between T and G, all that is free",
    "nothing but the pipe and its queue bounds the window of the long connection; chosen after the first runs",
    (
        *((f"links.{link}.{way}loss", NO_LOSS) for link in ("T-S", "S-G") for way in ("", "reverse.")),
        ("proxy.truck.advertise", "free"),
    ),
)
_WINDOWS = Mechanism(
    "packets that the window between T and G exceeds in a tenth of the time, with 250 packets of cache",
    windows_of_long_connection,
)
BY_NAME = {reading.name: reading for reading in READINGS}
_KNEE = Experiment(
    "what counts as the knee, what the proxy advertises, the node queues, and lost ACKs",
    (
        Reading("break of slope", "two straight lines fitted to the curve", measure="break of slope"),
        FREE,
        *QUEUES,
        BY_NAME["data lost alone"],
        BY_NAME["T-G once"],
    ),
    "From W to G the cache lies before the long connection, which may have all of it in flight, so the knee is about "
    "the window of that connection. From G to W half of the cache bounds this window, so the knee is about twice it. "
    "Losses leave Westwood a larger window than NewReno.",
)
_RETURN = Experiment(
    "cache, advertised window, node queues and lost ACKs",
    (*_caches(250, 400, 1000), FREE, *QUEUES, BY_NAME["data lost alone"], BY_NAME["no initial ssthresh"]),
    "From G to W the connection with the satellite links ends at the proxy, whose rule allows half of the cache in "
    "flight; at a PER of 0.1 % there is little for the proxy to hide, and a second slow start and the narrower window "
    "cost more than the shorter loop of the first link gains.",
)
EXPERIMENTS: dict[str, Experiment] = {
    "000-C08": Experiment(
        "which links lose packets, lost ACKs, the filter and recovery of Westwood, and the limit of slow start",
        tuple(
            BY_NAME[name]
            for name in (
                "T-G once",
                "every hop",
                "all links",
                "data lost alone",
                "literal",
                "no initial ssthresh",
                "Sack1",
            )
        ),
        "Behind the proxy the losses of the first links hardly matter, so that the ratio is that at the other loss "
        "rates, about 0.71: it follows the losses between T and G, on whose number per hop the text is not clear.",
    ),
    "000-C19": _RETURN,
    "000-C20": _RETURN,
    "000-C21": _RETURN,
    "000-C22": Experiment(
        "what growth means and which links lose 1 %",
        (Reading("mean window", "the mean window instead of its slope", measure="mean window"), BY_NAME["all links"]),
        "The slope in congestion avoidance is one packet per round trip, and the queue that a larger window builds "
        "lengthens the round trip.",
    ),
    "000-C29": replace(_KNEE, mechanism=_WINDOWS),
    "000-C30": replace(
        _KNEE,
        assumption=f"the window onward, the losses between T and G, {_KNEE.assumption}",
        readings=(THIRD_ONWARD, THIRD_ONWARD_BREAK, NO_LOSS_FREE, *_KNEE.readings),
        text=f"{_KNEE.text} So one value for all four does not come out, whatever multiple of the window the agent's "
        "rule takes. Without losses between T and G, and with all free memory advertised, the four are alike.",
        mechanism=_WINDOWS,
    ),
    "000-C41": Experiment(
        "how bursty the losses are",
        tuple(
            Reading(
                f"bursts of {burst}",
                f"bursts of {burst} packets, {100 * loss:g} % of all",
                tuple(
                    (f"links.W-U.{way}loss", table(model="gilbert_elliott", mean_loss=loss, mean_burst=float(burst)))
                    for way in ("", "reverse.")
                ),
            )
            for burst, loss in ((5, 0.01), (20, 0.02), (50, 0.05))
        ),
    ),
}
