"""What Lee et al. 2020 leave open: our defaults, the other readings, and the experiments on what differs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hindflight.replay.papers.asran.cells import SHARED, used_share
from hindflight.replay.papers.model import Cell, Change, Choice, Experiment, Mechanism, Reading, table

CHOICES: tuple[Choice, ...] = (
    Choice(
        "channel",
        "the model `uav`: 19 % of the seconds nothing, 45 % the full rate",
        "figure 1; lengths of the periods are not given",
    ),
    Choice("rate of the unstable path", "3 Mbit/s", "not given; the flows of table 1 then fill it"),
    Choice(
        "queue",
        "100 packets, first in, first out",
        "not given. Known from earlier trials: the queue decides the ratio of the two flows",
    ),
    Choice("radios of the UAVs", "one, which limits nothing", "not given"),
    Choice(
        "cwnd after a loss",
        "halved, then slow start",
        "section 3.3 and figure 2; the kernel text reads otherwise: reading `hook`",
    ),
    Choice("timeout", "as the base", "section 3.2; the kernel text reads otherwise: reading `revise`"),
    Choice("heavy traffic", "a third flow with CUBIC that always has data", "not given"),
    Choice(
        "exchange of relays", "a break of 15 s, 9 Mbit/s, 0.1 % of loss", "not given; DSDV sends its updates every 15 s"
    ),
)


def _both(key: str, value: object) -> tuple[Change, ...]:
    return ((f"variants.asran-cubic.{key}", value), (f"variants.asran-newreno.{key}", value))


def _limited(rate: str, cell: Cell) -> tuple[Change, ...]:
    """Both flows write at `rate` over a path of 6 Mbit/s, so that only the instability loses packets."""
    if cell.scenario != SHARED:
        return ()
    writes = table(kind="on_off", rate=rate, on="10 s", off="0 s")
    return (
        ("flow.application", writes),
        ("flows.asran.application", writes),
        ("links.adhoc.channel", table(model="uav", rate="6 Mbit/s")),
    )


def _queue(name: str, text: str, queue: object) -> Reading:
    return Reading(name, text, (("links.adhoc.queue", queue),))


HOOK = Reading("hook", "cwnd becomes the new ssthresh at once, as the kernel's hook has it", _both("mode", "hook"))
REVISE = Reading("revise", "a timeout sets ssthresh as a loss does", _both("on_timeout", "revise"))


def _as_the_text_says(cell: Cell) -> tuple[Change, ...]:
    return (*_both("mode", "hook"), *_both("on_timeout", "revise"), *_limited("1.5 Mbit/s", cell))


LITERAL = Reading(
    "literal",
    "the kernel's hook sets cwnd at once, also after a timeout (5.1.1); flows of low throughput (5.1.2)",
    _as_the_text_says,
    literal=True,
)
LIMITED = Reading(
    "flows of 1.5 Mbit/s",
    "section 5.1.2: flows of low throughput, which overflow no queue",
    partial(_limited, "1.5 Mbit/s"),
)
LIMITED_MORE = replace(LIMITED, name="flows of 1.2 Mbit/s", changes=partial(_limited, "1.2 Mbit/s"))
DRR = _queue("round robin", "the flows take turns", table(kind="drr", limit="100 pkts"))
CODEL = _queue("CoDel", "a queue that limits its delay", table(kind="codel"))
SHORT = _queue("queue 20", "a queue of 20 packets", "20 pkts")
READINGS: tuple[Reading, ...] = (LITERAL, HOOK, REVISE, LIMITED, DRR)


def _loss(per: float) -> Reading:
    lossy = table(model="bernoulli", per=per)
    return Reading(
        f"loss {100 * per:g} %", "random losses in addition", (("links.wifi.loss", lossy), ("links.relays.loss", lossy))
    )


def _delay(delay: str) -> Reading:
    return Reading(f"first link {delay}", "a longer way to the relays", (("links.first.delay", delay),))


_SHARING = Experiment(
    "how the flows share the path",
    (SHORT, CODEL, DRR, LIMITED, LIMITED_MORE, _loss(0.01)),
    "The text gives neither queue nor offered rate. In one queue ASRAN takes what CUBIC leaves after each of its "
    "losses: the losses of a full queue look like instability to it.",
)
EXPERIMENTS: dict[str, Experiment] = {
    "002-C05": _SHARING,
    "002-C07": _SHARING,
    "002-C09": _SHARING,
    "002-C12": _SHARING,
    "002-C15": _SHARING,
    "002-C16": _SHARING,
    "002-C19": Experiment(
        "losses and delay of the ad hoc path, what the kernel text says",
        (
            *(_loss(per) for per in (0.003, 0.01, 0.03)),
            *(_delay(delay) for delay in ("5 ms", "10 ms", "20 ms", "50 ms", "100 ms")),
            HOOK,
            REVISE,
        ),
        "The text gives neither losses nor delay. Where NewReno uses most of the link while it has a route, ASRAN has "
        "nothing to gain, and its slow start after a loss costs a little. The longer the round trip and the more "
        "losses, the more NewReno leaves, and the gain passes the paper's 1.13 on its way.",
        Mechanism("share of the link used while there is a route", used_share),
    ),
}
