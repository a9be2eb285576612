"""The lines that `python -m validation captures` prints: each a quantity, its value, and the bound stated for it.

Depends on scores only. A value that does not exist, because nothing of its kind occurred, passes no bound and fails
none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from validation.captures.links import LinkScore
from validation.captures.report import SIDES, FlowScore
from validation.captures.scores import CauseScore, Counts, WindowScore, quantile
from validation.captures.spread import Spread
from validation.captures.stretches import Given
from validation.captures.true_link import FLIGHTS, Flights
from validation.captures.whatif import FAMILIES, SELF_CHECK_PERCENT, Asked, Pair, PairSummary, as_predicted, summarise
from validation.judge import Check
from validation.linux import FlowResult, RunResult

WINDOWED = ("reno", "cubic")
"""Congestion controls whose cwnd shows in the capture."""

MIN_LOSSES = 20
MIN_CASES = 10

MAX_UNKNOWN = 0.03
"""Share of the transmissions of which it may be unknown whether they arrived."""

GOODPUT, BBR_GOODPUT, QUARTILE = 0.02, 0.04, 0.10
"""Relative differences that the engine may have from Linux."""


@dataclass(frozen=True, slots=True)
class Line:
    """`value` against `bound`: at least it, or at most it; `of` counts what the value is a share or quantile of."""

    subject: str
    metric: str
    value: float | None
    bound: float | None
    at_least: bool
    of: int

    @property
    def verdict(self) -> str:
        """Return pass, fail, or - without value or bound."""
        if self.value is None or self.bound is None:
            return "-"
        return "pass" if (self.value >= self.bound if self.at_least else self.value <= self.bound) else "fail"


def _at_least(subject: str, metric: str, value: float | None, bound: float | None, of: int) -> Line:
    return Line(subject, metric, value, bound, at_least=True, of=of)


def _at_most(subject: str, metric: str, value: float | None, bound: float | None, of: int) -> Line:
    return Line(subject, metric, value, bound, at_least=False, of=of)


def loss_lines(flows: Sequence[FlowScore]) -> Iterator[Line]:
    """Losses per transmission, pooled, and the worst flow with enough of them.

    A flow has as many as were lost: what is said to be unknown of them takes it out of no line. Where fewer are
    decided, those are judged as in a flow with fewer, too.
    """
    bounds = {"sender": (0.99, {True: 0.95, False: 0.85}), "receiver": (0.98, {True: 0.90, False: 0.90})}
    for side in SIDES:
        pooled_bound, worst_bounds = bounds[side]
        own = [flow for flow in flows if flow.side == side]
        pooled = sum((flow.losses for flow in own), Counts())
        subject = f"losses, {side}"
        yield _at_least(subject, "precision, pooled", pooled.precision, pooled_bound, pooled.right + pooled.wrong)
        yield _at_least(subject, "recall, pooled", pooled.recall, pooled_bound, pooled.cases)
        for sack, bound in worst_bounds.items():
            many = [flow for flow in own if flow.lost >= MIN_LOSSES and flow.sack == sack]
            name = f"worst flow with {MIN_LOSSES} losses or more, {'' if sack else 'no '}SACK"
            yield _at_least(subject, name, min((_worse(flow.losses) for flow in many), default=None), bound, len(many))
        yield from _unknown_lines(subject, own)
        few = [flow.losses for flow in own if flow.losses.cases < MIN_LOSSES]
        yield _at_most(
            subject, "errors in a flow with fewer", max((c.wrong + c.missed for c in few), default=None), 1, len(few)
        )


def _unknown_lines(subject: str, own: Sequence[FlowScore]) -> Iterator[Line]:
    """What is said to be unknown, of all transmissions and of the lost ones; the latter has no bound."""
    sent, lost = sum(flow.transmissions for flow in own), sum(flow.lost for flow in own)
    unknown = sum(flow.losses.unknown for flow in own)
    yield _at_most(subject, "transmissions of unknown fate", unknown / sent if sent else None, MAX_UNKNOWN, sent)
    share = sum(flow.unknown_lost for flow in own) / lost if lost else None
    yield _at_most(subject, "lost transmissions of unknown fate", share, None, lost)
    for sack in (True, False):
        many = [flow for flow in own if flow.lost >= MIN_LOSSES and flow.sack == sack]
        name = f"their share in the worst flow with {MIN_LOSSES} losses or more, {'' if sack else 'no '}SACK"
        most = max((flow.unknown_lost / flow.lost for flow in many), default=None)
        yield _at_most(subject, name, most, None, len(many))


def _worse(counts: Counts) -> float:
    values = [value for value in (counts.precision, counts.recall) if value is not None]
    return min(values, default=1.0)


def cause_lines(flows: Sequence[FlowScore]) -> Iterator[Line]:
    """Mechanisms of retransmissions at the sender, and whether they were spurious."""
    own = [flow for flow in flows if flow.side == "sender"]
    pooled = sum((flow.causes for flow in own), CauseScore())
    for cause, counts in pooled.by_cause.items():
        bound = 0.95 if counts.cases >= MIN_CASES else None
        yield _at_least("causes", f"{cause}: precision", counts.precision, bound, counts.right + counts.wrong)
        yield _at_least("causes", f"{cause}: recall", counts.recall, bound, counts.cases)
    timeouts = [flow.causes.by_cause.get("rto", Counts()) for flow in own]
    exact = [counts.wrong == counts.missed == counts.unknown == 0 for counts in timeouts]
    yield _at_least("causes", "flows with every RTO found and none invented", _share(exact), 0.95, len(exact))
    yield _at_least(
        "causes", "spurious: precision", pooled.spurious.precision, 0.95, pooled.spurious.right + pooled.spurious.wrong
    )
    yield _at_least(
        "causes",
        "spurious, shown by the capture: recall",
        pooled.spurious_shown.recall,
        0.95,
        pooled.spurious_shown.cases,
    )


def window_lines(flows: Sequence[FlowScore]) -> Iterator[Line]:
    """cwnd per round trip for reno and cubic, in-flight for bbr. Flows without timestamps also count apart."""
    own = {
        side: [flow for flow in flows if flow.side == side and flow.congestion_control in WINDOWED]
        for side in ("sender", "receiver")
    }
    for side, (median, far, cover, held, width) in {
        "sender": (0.01, None, 0.95, 0.93, 0.10),
        "receiver": (0.03, 0.20, 0.95, 0.90, 0.25),
    }.items():
        pooled = sum((flow.windows for flow in own[side]), WindowScore())
        yield from _window_lines(f"cwnd, {side}", pooled, (median, far, cover, held, width), side == "sender")
    shown = sum((flow.windows for flow in own["receiver"] if flow.timestamps), WindowScore())
    name = "round trips with an estimate, flows with timestamps"
    yield _at_least("cwnd, receiver", name, shown.coverage, 0.95, shown.counted)
    hidden = sum((flow.windows for flow in own["receiver"] if not flow.timestamps), WindowScore())
    name = "flows without timestamps"
    yield _at_least("cwnd, receiver", f"round trips with an estimate, {name}", hidden.coverage, None, hidden.counted)
    yield _at_most("cwnd, receiver", f"95th percentile, {name}", hidden.quantile(0.95), None, len(hidden.errors))
    inside = hidden.held / hidden.bounded if hidden.bounded else None
    yield _at_least("cwnd, receiver", f"95 % interval holds the truth, {name}", inside, 0.90, hidden.bounded)
    others = [flow for flow in flows if flow.side == "sender" and flow.congestion_control not in WINDOWED]
    bbr = sum((flow.windows for flow in others), WindowScore())
    yield _at_most("in-flight of bbr", "median error", bbr.quantile(0.5), 0.02, len(bbr.errors))
    yield _at_most("in-flight of bbr", "95th percentile", bbr.quantile(0.95), 0.10, len(bbr.errors))


def _window_lines(
    subject: str,
    score: WindowScore,
    bounds: tuple[float, float | None, float | None, float, float],
    judges_within: bool,
) -> Iterator[Line]:
    median, far, cover, held, width = bounds
    n = len(score.errors)
    yield _at_most(subject, "median error", score.quantile(0.5), median, n)
    yield _at_most(subject, "95th percentile", score.quantile(0.95), far, n)
    if judges_within:
        yield _at_least(subject, "within 1 segment or 12 %", score.within / n if n else None, 0.95, n)
    yield _at_least(subject, "round trips with an estimate", score.coverage, cover, score.counted)
    yield _at_least(
        subject,
        "95 % interval holds the truth",
        score.held / score.bounded if score.bounded else None,
        held,
        score.bounded,
    )
    yield _at_most(subject, "median width of the interval", quantile(score.widths, 0.5), width, len(score.widths))


def link_lines(flows: Sequence[FlowScore]) -> Iterator[Line]:
    """The channel: losses by cause, delay and rate over time, outages."""
    score = sum((flow.link for flow in flows if flow.link is not None), LinkScore())
    for cause, counts in score.causes.items():
        yield _at_least("channel", f"{cause} losses: precision", counts.precision, 0.95, counts.right + counts.wrong)
        yield _at_least("channel", f"{cause} losses: recall", counts.recall, 0.95, counts.cases)
    for cause, counts in score.causes.items():
        cases = counts.unknown + counts.cases
        share = counts.unknown / cases if cases else None
        yield _at_most("channel", f"{cause} losses of unknown fate or cause", share, None, cases)
        found = counts.right / cases if cases else None
        yield _at_least("channel", f"{cause} losses: recall if unknown counts as missed", found, None, cases)
    judged = score.judged_ns
    seconds = judged // 1_000_000_000
    for metric, part, bound in (
        ("time with delay off by more than 5 %", score.delay_off_ns, 0.05),
        ("time with delay not known", score.delay_unknown_ns, 0.20),
        ("time with rate off by more than 5 %", score.rate_off_ns, 0.05),
        ("time with rate not known", score.rate_unknown_ns, 0.20),
    ):
        yield _at_most("channel", f"{metric} (of s)", part / judged if judged else None, bound, seconds)
    yield from _stretch_lines(score)
    yield _at_least(
        "channel", "outages: precision", score.outages.precision, None, score.outages.right + score.outages.wrong
    )
    yield _at_least("channel", "outages: recall", score.outages.recall, None, score.outages.cases)
    near = [edge <= 1 for edge in score.outage_edges]
    yield _at_least("channel", "outage edges within one RTT", _share(near), 1.0, len(near))
    edges = len(near) + score.edges_unknown
    unknown = score.edges_unknown / edges if edges else None
    yield _at_most("channel", "outage edges said to be uncertain by more", unknown, 0.20, edges)
    unmarked = score.edges_unmarked / edges if edges else None
    yield _at_most("channel", "outage edges that no packet of the capture marks to one RTT", unmarked, None, edges)
    marked = edges - score.edges_unmarked
    withheld = score.edges_withheld / marked if marked else None
    yield _at_most("channel", "outage edges said to be uncertain by more, of all others", withheld, 0.20, marked)


def _stretch_lines(score: LinkScore) -> Iterator[Line]:
    """RTT, rate and queue of each stretch between two changes of the link."""
    for name, width in (("rtt", 0.05), ("rate", 0.05), ("queue", 0.20)):
        given = score.stretches.get(name, Given())
        shown = "RTT" if name == "rtt" else name
        share = given.given / given.asked if given.asked else None
        held = given.inside / given.given if given.given else None
        yield _at_least("channel", f"stretches with {shown} given", share, 0.80, given.asked)
        yield _at_least("channel", f"95 % interval of their {shown} holds the truth", held, 0.90, given.given)
        middle = quantile(given.widths, 0.5)
        yield _at_most("channel", f"median width of the interval of their {shown}", middle, width, given.given)
    hidden = given.hidden / given.asked if given.asked else None
    yield _at_most("channel", "stretches of runs whose queue dropped nothing", hidden, None, given.asked)
    others = given.asked - given.hidden
    share = given.given / others if others else None
    yield _at_least("channel", "stretches with queue given, of all others", share, 0.80, others)


def whatif_lines(asked: Sequence[Asked], pairs: Sequence[Pair]) -> Iterator[Line]:
    """What-if: aborts, the variant that is named, the self-check, and predictions compared with recordings."""
    n = len(asked)
    yield _at_most("what-if", "captures without an answer", float(sum(one.error is not None for one in asked)), 0, n)
    yield from _named_lines("what-if", asked, 0.85)
    named = [one.named in FAMILIES[one.congestion_control] for one in asked]
    yield _at_least("what-if", "variant named rightly, all captures", _share(named), None, n)
    yield _self_check_line("what-if", [one.self_check_percent for one in asked], 0.85)
    name = f"self-check within {SELF_CHECK_PERCENT:g} %, other flows as TCP"
    yield _at_least("what-if", name, _share(_checked([one.as_tcp_percent for one in asked])), None, n)
    groups = sorted({pair.group for pair in pairs})
    for group in (None, *groups):
        own = [pair for pair in pairs if group in (None, pair.group)]
        yield from _pair_lines("predictions" if group is None else f"predictions, {group}", own, whole=group is None)
    counted = summarise(as_predicted(asked, pairs))
    yield from _error_lines("predictions, recording counted to its last new data", counted)


def true_link_lines(flights: Sequence[Flights]) -> Iterator[Line]:
    """How much flights over the true link differ: the width of intervals has to be compared with it."""
    subject, widths, n = "flights over the true link", [run.width for run in flights], len(flights)
    holds = _share([run.holds for run in flights])
    yield _at_least(subject, f"range of {FLIGHTS} flights holds the recording", holds, None, n)
    yield _at_most(subject, "median width of the range", quantile(widths, 0.5), None, n)
    yield _at_most(subject, "90th percentile of the width", quantile(widths, 0.9), None, n)


def receiver_lines(asked: Sequence[Asked], pairs: Sequence[Pair]) -> Iterator[Line]:
    """What-if from captures at the receiver. Those without timestamps are refused; the other shares are of the rest."""
    subject, rest = "what-if at the receiver", [one for one in asked if one.error is None]
    yield _at_least(subject, "captures answered", _share([one.error is None for one in asked]), None, len(asked))
    yield from _named_lines(subject, rest, 0.60)
    yield _self_check_line(subject, [one.self_check_percent for one in rest], None)
    subject, summary = "predictions at the receiver", summarise(pairs)
    yield from _error_lines(subject, summary)
    yield _at_most(subject, "median width of the interval", summary.width_median, None, summary.answered)


def _named_lines(subject: str, asked: Sequence[Asked], bound: float) -> Iterator[Line]:
    """How often the variant is named wrongly, and rightly (at least `bound`) where the network shows it."""
    wrong = [one.named not in (*FAMILIES[one.congestion_control], "unknown", None) for one in asked]
    yield _at_most(subject, "variant named wrongly", _share(wrong), 0.03, len(asked))
    shown = [one.named in FAMILIES[one.congestion_control] for one in asked if one.identifiable]
    yield _at_least(subject, "variant named rightly, where the network limits", _share(shown), bound, len(shown))


def _self_check_line(subject: str, percents: Sequence[float | None], bound: float | None) -> Line:
    name = f"self-check within {SELF_CHECK_PERCENT:g} %"
    return _at_least(subject, name, _share(_checked(percents)), bound, len(percents))


def _checked(percents: Sequence[float | None]) -> list[bool]:
    return [percent is not None and abs(percent) <= SELF_CHECK_PERCENT for percent in percents]


def engine_lines(runs: Sequence[RunResult], spreads: Mapping[tuple[str, int], Spread]) -> Iterator[Line]:
    """The engine over the true link: goodput and quartiles of cwnd, flow by flow. `spreads` are Linux's own, over
    repeated recordings of a run, for the flows that have them."""
    flows = [(flow, spreads.get((run.name, number), Spread())) for run in runs for number, flow in enumerate(run.flows)]
    repeated = bool(spreads)
    one = [(flow.variant, checks_of(flow.checks), spread) for flow, spread in flows]
    yield from _engine_lines("engine", one, repeated=repeated)
    medians = [(flow.variant, checks_of(flow.medians), spread) for flow, spread in flows]
    if any(checks for _, checks, _ in medians):
        yield from _engine_lines("engine, median of several replays", medians, repeated=repeated)


def _engine_lines(
    subject: str, flows: Sequence[tuple[str, dict[str, Check], Spread]], *, repeated: bool
) -> Iterator[Line]:
    """Lines of flows, each its variant, its checks by metric and Linux's own spread, which some have if `repeated`."""

    def held(metric: str, share: float, bbr: float) -> tuple[list[bool], list[bool], list[bool]]:
        """Whether each flow is within the bound; whether it is or lies within Linux's own spread; and whether it is or
        could be one more recording of Linux."""
        judged = [(variant, checks[metric], spread) for variant, checks, spread in flows if metric in checks]
        near = [within(check, bbr if variant == "bbr" else share) for variant, check, _ in judged]
        pairs = list(zip(near, judged, strict=True))
        own = [is_near or spread.holds(check) for is_near, (_, check, spread) in pairs]
        return near, own, [is_near or spread.predicts(check) for is_near, (_, check, spread) in pairs]

    near, own, possible = held("goodput", GOODPUT, BBR_GOODPUT)
    yield _at_least(subject, "goodput within 2 % (bbr 4 %)", _share(near), None if repeated else 0.90, len(near))
    if repeated:
        name = "goodput within that, or within Linux's own spread"
        yield _at_least(subject, name, _share(own), 0.90, len(own))
        name = "goodput within that, or within the 95 % interval of one more recording of Linux"
        yield _at_least(subject, name, _share(possible), None, len(possible))
    for percent in (25, 50, 75):
        near, own, _ = held(f"cwnd_p{percent}", QUARTILE, QUARTILE)
        yield _at_least(subject, f"{percent}th percentile of cwnd within 10 %", _share(near), 0.80, len(near))
        if repeated:
            name = f"{percent}th percentile within that, or within Linux's own spread"
            yield _at_least(subject, name, _share(own), None, len(own))


def checks_of(checks: Sequence[Check]) -> dict[str, Check]:
    """Return those of `checks` that could be made, by metric."""
    return {check.metric: check for check in checks if check.value is not None}


def engine_errors(flow: FlowResult) -> list[float]:
    """Return the relative errors of goodput and quartiles that are too large."""
    goodput = BBR_GOODPUT if flow.variant == "bbr" else GOODPUT
    bounds = {"goodput": goodput} | dict.fromkeys(("cwnd_p25", "cwnd_p50", "cwnd_p75"), QUARTILE)
    checks = checks_of(flow.checks)
    return [
        abs(checks[name].relative or 0.0)
        for name, bound in bounds.items()
        if name in checks and not within(checks[name], bound)
    ]


def within(check: Check, share: float) -> bool:
    """Whether a value is within `share` of its reference."""
    return check.relative is not None and abs(check.relative) <= share


def _pair_lines(subject: str, pairs: Sequence[Pair], *, whole: bool) -> Iterator[Line]:
    summary = summarise(pairs)
    answered = summary.answered / summary.asked if summary.asked else None
    yield _at_least(subject, "answered", answered, 0.80, summary.asked)
    yield _at_most(subject, "median error", summary.median, 0.03 if whole else None, summary.answered)
    yield _at_most(subject, "90th percentile of the error", summary.p90, 0.25 if whole else None, summary.answered)
    yield _at_least(
        subject, "95 % interval holds the recording", summary.coverage, 0.88 if whole else 0.80, summary.answered
    )
    if not whole:
        return
    yield _at_most(subject, "median error, all pairs", summary.median_all, None, summary.asked)
    yield _at_most(subject, "90th percentile, all pairs", summary.p90_all, None, summary.asked)
    yield _at_most(subject, "median width of the interval", summary.width_median, 0.12, summary.answered)
    yield _at_most(subject, "90th percentile of the width", summary.width_p90, 0.80, summary.answered)
    yield _at_most(subject, "interval score", summary.score, summary.constant_score, summary.answered)


def _error_lines(subject: str, summary: PairSummary) -> Iterator[Line]:
    """Errors and coverage of predictions, without bounds."""
    yield _at_most(subject, "median error", summary.median, None, summary.answered)
    yield _at_most(subject, "90th percentile of the error", summary.p90, None, summary.answered)
    yield _at_least(subject, "95 % interval holds the recording", summary.coverage, None, summary.answered)


def _share(cases: Sequence[bool]) -> float | None:
    return sum(cases) / len(cases) if cases else None


def worst(flows: Sequence[FlowScore], key: Callable[[FlowScore], float], how_many: int = 5) -> list[FlowScore]:
    """Return the flows with the largest `key`, those with none left out."""
    return sorted((flow for flow in flows if key(flow) > 0), key=key, reverse=True)[:how_many]
