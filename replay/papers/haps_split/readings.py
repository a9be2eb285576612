"""What Palazzi et al. 2005 leave open: our defaults, the other readings, and experiments on what is not reproduced."""

from __future__ import annotations

from hindflight.replay.papers.model import Cell, Change, Choice, Experiment, Reading, table

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
    Reading("Sack1", "recovery of Westwood by SACK", (("variants.westwood.stack", None),)),
)
EXPERIMENTS: dict[str, Experiment] = {}
