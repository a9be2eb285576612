"""The rules by which numbers become verdicts, and the intervals that they use."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from hindflight.replay.papers.judge import FULL, QUICK, Effort, judge_claim, reproduce_paper
from hindflight.replay.papers.lab import Bench, Lab
from hindflight.replay.papers.model import (
    Claim,
    Estimate,
    Experiment,
    Judged,
    Judges,
    Mechanism,
    Paper,
    Part,
    Reading,
    Verdict,
)
from hindflight.replay.papers.reasons import reason_of
from hindflight.replay.papers.statistics import (
    bootstrap,
    break_of_slope,
    difference,
    estimate,
    knee_of,
    mean,
    ratio,
)
from hindflight.replay.papers.verdicts import exact, holds, ordered, settled, verdict_of, within

BOUNDS = (0.5, 0.7)


def found(low: float, high: float, wider: float = 0.0) -> Estimate:
    return Estimate((low + high) / 2, low, high, low - wider, high + wider)


@pytest.mark.parametrize(
    ("low", "high", "state"),
    [
        (0.52, 0.56, "yes"),
        (0.48, 0.52, "partly"),
        (0.40, 0.49, "no"),
        (0.71, 0.80, "no"),
        (0.45, 0.75, "undecided"),
        (0.45, 0.55, "undecided"),
    ],
)
def test_a_number_inside_overlapping_or_outside_its_tolerance(low: float, high: float, state: str) -> None:
    # The tolerance is 0.1, so an interval narrower than 0.05 is narrow enough to be "partly".
    assert within("", found(low, high), BOUNDS).state == state


def test_an_ordering_needs_an_interval_without_zero() -> None:
    assert ordered("", found(0.1, 0.2)).state == "yes"
    assert ordered("", found(-0.2, -0.1)).state == "no"
    assert ordered("", found(-0.1, 0.2)).state == "undecided"
    assert ordered("", found(0.0, 0.0)).state == "no"


def parts(*states: str) -> list[Part]:
    facts = {"yes": True, "no": False, "undecided": None}
    return [Part("", "partly", "partly") if state == "partly" else holds("", facts[state]) for state in states]


@pytest.mark.parametrize(
    ("states", "verdict"),
    [
        (("yes", "yes"), "reproduced"),
        (("no", "no"), "not_reproduced"),
        (("yes", "no"), "partly"),
        (("partly",), "partly"),
        (("partly", "yes"), "partly"),
        (("yes", "undecided"), "too_few_runs"),
        (("no", "undecided"), "too_few_runs"),
        (("yes", "no", "undecided"), "partly"),
        (("partly", "undecided"), "too_few_runs"),
    ],
)
def test_parts_make_a_verdict(states: tuple[str, ...], verdict: str) -> None:
    assert verdict_of(parts(*states)) == verdict


def test_a_quick_verdict_must_hold_at_999() -> None:
    near = [within("", found(0.52, 0.56, wider=0.05), BOUNDS)]
    assert verdict_of(near) == "reproduced"
    assert verdict_of(near, strict=True) == "too_few_runs"
    assert not settled(near, strict=True)


def test_more_runs_are_made_until_the_interval_is_narrow() -> None:
    assert not settled([within("", found(0.52, 0.60), BOUNDS)], strict=False)
    assert settled([within("", found(0.52, 0.56), BOUNDS)], strict=False)
    assert settled(parts("yes", "no", "undecided"), strict=False), "nothing can change the verdict any more"


def test_an_interval_across_a_bound_takes_more_runs_however_narrow_it_is() -> None:
    (across,) = [within("", found(0.49, 0.51, wider=0.01), BOUNDS)]
    assert (across.state, across.more) == ("partly", float("inf"))
    near = within("", found(0.505, 0.515, wider=0.01), BOUNDS)
    assert (near.state, near.strict_state) == ("yes", "undecided")
    assert near.more == pytest.approx(((0.515 - 0.505) / 2 + 0.01) ** 2 / 0.01**2)
    assert not settled([near], strict=False), "several looks at 95 % would make up a verdict"
    assert within("", found(0.51, 0.53, wider=0.009), BOUNDS).more == 1


def test_exact_numbers_need_no_interval() -> None:
    assert exact("", 41.67, (41, 43)).state == "yes"
    assert exact("", 43.1, (41, 43)).state == "no"


def test_the_interval_of_a_mean_is_students() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    interval = mean(values)
    assert (interval.low, interval.high) == pytest.approx((3 - 1.9632, 3 + 1.9632), abs=1e-3)


def test_what_runs_have_in_common_cancels() -> None:
    rng = np.random.default_rng(7)
    common = rng.normal(100, 30, 50)
    a, b = common + 1 + rng.normal(0, 0.1, 50), common
    assert difference(a, b).low > 0.9
    twice = ratio(2 * common, common)
    assert (twice.low, twice.high) == pytest.approx((2, 2), abs=1e-6)


def test_intervals_of_a_ratio_cover_it() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        a, b = rng.normal(10, 2, 30), rng.normal(5, 1, 30)
        interval = estimate(lambda x, y: x / y, a, b)
        hits += interval.low <= 2 <= interval.high
    assert 0.92 < hits / 400 < 0.98


def test_knees() -> None:
    xs = (10, 50, 84, 150, 250)
    assert knee_of(xs, (100, 500, 840, 990, 1000)) == pytest.approx(84 + 66 * 110 / 150)
    bent = [min(x, 84) + 0.05 * max(0, x - 84) for x in range(10, 251, 10)]
    assert break_of_slope(tuple(range(10, 251, 10)), bent) == pytest.approx(84, abs=1.5)
    flat = bootstrap(lambda *ys: knee_of(xs, ys), *(np.full(10, y) for y in (100.0, 500.0, 840.0, 990.0, 1000.0)))
    assert flat.low == flat.high == flat.value


def test_knees_of_many_curves_are_those_of_each() -> None:
    rng = np.random.default_rng(2)
    xs = (3, 9, 21, 33, 51, 75, 100, 130)
    curves = np.minimum(np.array(xs, dtype=float), 50)[:, np.newaxis] + rng.normal(0, 8, (len(xs), 50))
    curves[2, 3] = curves[1, 3] = 2 * curves[-1, 3]
    curves[0, 4] = curves[-1, 4]
    for knee in (knee_of, break_of_slope):
        assert knee(xs, curves).tolist() == [knee(xs, curve) for curve in curves.T]
    assert knee_of(xs, curves)[4] == xs[0]


def test_a_full_verdict_takes_the_runs_of_the_paper_and_a_more_are_not_forced() -> None:
    judge = Judges()
    seen: list[int] = []

    @judge("x")
    def _count(lab: Lab, _claim: Claim) -> list[Part]:
        lab.use([])
        seen.append(lab.runs)
        return [holds("", fact=True)]

    paper = replace(paper_with(judge), min_runs=100)
    street = replace(paper, min_runs_of={"x": 300})
    fixed = replace(FULL, first=10, maximum=10)
    few = replace(street, max_runs=40)
    for each, effort in ((paper, FULL), (street, FULL), (paper, QUICK), (street, fixed), (few, FULL)):
        judge_claim(each, CLAIM, effort, Bench(1))
    assert seen == [100, 300, QUICK.first, 10, 40]


CLAIM = Claim("x", "", "", "", "ratio", "", "", "", "stated", "engine", "", BOUNDS)


def paper_with(judges: Judges) -> Paper:
    return Paper("0", "p", "", "", (), (), (), judges, (), {})


def test_a_ratio_to_nothing_is_undecided() -> None:
    judge = Judges()

    @judge("x")
    def _(lab: Lab, claim: Claim) -> list[Part]:
        lab.used.add(None)  # type: ignore[arg-type]
        return [within("", ratio(np.ones(5), np.zeros(5)), claim.bounds)]

    judged = judge_claim(paper_with(judge), CLAIM, Effort(4, 8, 4, 4, quick=False), Bench())
    assert (judged.verdict, judged.reason) == (
        "too_few_runs",
        "a ratio: no data arrived in the runs that it divides by",
    )


def test_runs_double_until_they_decide() -> None:
    seen, judge = [], Judges()

    @judge("x")
    def _(lab: Lab, claim: Claim) -> list[Part]:
        lab.use([])
        seen.append(lab.runs)
        wide = 1.0 / lab.runs
        return [within("", found(0.6 - wide, 0.6 + wide), claim.bounds)]

    effort = Effort(first=4, maximum=100, readings=4, figures=4, quick=False)
    judged = judge_claim(paper_with(judge), CLAIM, effort, Bench())
    # An interval that narrows with the number of runs; each step is at least half as many again.
    assert seen[0] == 4
    assert all(after >= 1.5 * before for before, after in pairwise(seen))
    assert (judged.verdict, judged.runs) == ("reproduced", seen[-1])
    assert 2.0 / seen[-1] <= 0.05
    few = judge_claim(paper_with(judge), CLAIM, Effort(4, 8, 4, 4, quick=False), Bench())
    assert few.verdict == "too_few_runs"


def judged_as(verdict: Verdict, reading: str = "") -> Judged:
    return Judged(CLAIM, reading, (), verdict, 10, "it is low")


def test_a_reason_names_every_outcome_as_it_is() -> None:
    outcomes = [judged_as("reproduced", "a"), judged_as("too_few_runs", "b"), judged_as("partly", "c")]
    experiment = Experiment("the queue", (), "It is short.")
    text = "it is low. Varied (at most 10 runs each): the queue; reproduced with a; "
    text += "not reproduced, or in part, with c; undecided with b. Supposed cause: It is short."
    assert reason_of(judged_as("not_reproduced"), experiment, outcomes) == text
    assert reason_of(judged_as("too_few_runs"), experiment, outcomes) == text, "what is near a bound has a cause too"


def test_a_reason_says_how_far_the_readings_come_that_do_not_reproduce_a_claim() -> None:
    experiment = Experiment("the queue", ())
    numbers = [
        replace(judged_as("not_reproduced", name), parts=(Part("", "no", "no", value),))
        for name, value in (("", 0.4), ("a", 0.3), ("b", 0.45))
    ]
    text = f"None of these 2 readings reproduces it: it lies between 0.3 and 0.45, and {CLAIM.expected} is expected."
    assert text in reason_of(numbers[0], experiment, numbers[1:])
    held = replace(judged_as("partly", "a"), parts=(holds("", True), holds("", False), holds("", False)))
    rest = [replace(held, reading="b", parts=held.parts[:1] * 2 + held.parts[1:2])]
    reason = reason_of(held, experiment, [held, *rest])
    assert "with a (1 of 3 parts), b (2 of 3 parts)" in reason
    assert "None of these 2 readings reproduces it: between 1 and 2 of 3 parts hold." in reason
    assert "None of" not in reason_of(numbers[0], experiment, [*numbers[1:], judged_as("reproduced", "c")])


def test_a_reason_says_which_readings_move_what_does_not_hold() -> None:
    def with_parts(verdict: Verdict, reading: str, first: float, second: float) -> Judged:
        values = [Part("first", "yes", "yes", first), Part("second", "no", "no", second)]
        return replace(judged_as(verdict, reading), parts=tuple(values))

    outcomes = [with_parts("partly", name, 1.0, value) for name, value in (("a", -0.2), ("b", 0.3), ("c", 0.1))]
    reason = reason_of(with_parts("partly", "", 2.0, -0.5), Experiment("the queue", ()), outcomes)
    assert "The readings move what does not hold: second: -0.2 (a) to 0.3 (b)." in reason
    single = [replace(judged_as("reproduced", "a"), parts=(Part("", "yes", "yes", 1.04),))]
    assert "reproduced with a (1.04)." in reason_of(judged_as("not_reproduced"), Experiment("it", ()), single)


def test_a_mechanism_is_measured_under_the_default_and_each_reading() -> None:
    judge = Judges()
    judge("x")(lambda _lab, _claim: [holds("", False)])
    seen: list[tuple[str, int]] = []

    def measure(lab: Lab) -> dict[str, float]:
        seen.append((lab.reading.name, lab.runs))
        return {"NewReno": 41.0 + len(seen), "Westwood": 92.0}

    readings = (Reading("longer queue", ""), Reading("shorter queue", ""))
    experiment = Experiment("the queue", readings, mechanism=Mechanism("packets in flight", measure))
    paper = replace(paper_with(judge), experiments={"x": experiment}, readings=(), figures=())
    effort = Effort(first=4, maximum=8, readings=4, figures=4, quick=False)
    (judged,) = reproduce_paper(paper, [CLAIM], effort, Bench()).judged
    assert sorted(seen) == [("default", 4), ("longer queue", 4), ("shorter queue", 4)]
    text = "Measured, packets in flight: default: NewReno 44, Westwood 92; longer queue: NewReno 42, Westwood 92; "
    assert text + "shorter queue: NewReno 43, Westwood 92." in judged.reason


@pytest.mark.parametrize("experiments", [{}, {"x": Experiment("the queue", ())}])
def test_a_claim_that_does_not_reproduce_says_if_it_has_no_experiment(experiments: dict[str, Experiment]) -> None:
    judge = Judges()
    judge("x")(lambda _lab, _claim: [holds("", False)])
    paper = replace(paper_with(judge), experiments=experiments)
    (judged,) = reproduce_paper(paper, [CLAIM], QUICK, Bench()).judged
    assert judged.reason.endswith("No experiment on it yet.") == (not experiments)


def test_several_looks_at_equals_find_no_more_orderings_than_one_look() -> None:
    rng, judge, trials = np.random.default_rng(3), Judges(), 1500
    values = np.zeros(FULL.maximum)

    @judge("x")
    def _(lab: Lab, _claim: Claim) -> list[Part]:
        lab.use([])
        return [ordered("", mean(values[: lab.runs]))]

    decided = 0
    for _trial in range(trials):
        values[:] = rng.normal(0, 1, FULL.maximum)
        decided += judge_claim(paper_with(judge), CLAIM, FULL, Bench()).verdict != "too_few_runs"
    assert 0.04 < decided / trials < 0.06


def test_an_ordering_at_95_percent_asks_for_more_runs() -> None:
    near = [ordered("", found(0.1, 0.3, wider=0.2))]
    assert verdict_of(near) == "reproduced"
    assert not settled(near, strict=False)
    assert settled([ordered("", found(0.1, 0.3, wider=0.05))], strict=False)


def test_a_judge_that_takes_fewer_runs_is_asked_once_and_says_how_many() -> None:
    asked, judge = [], Judges()

    @judge("x")
    def _(lab: Lab, _claim: Claim) -> list[Part]:
        lab.use([], 12)
        asked.append(lab.runs)
        return [ordered("", found(-0.1, 0.2))]

    judged = judge_claim(paper_with(judge), CLAIM, FULL, Bench())
    assert (asked, judged.runs, judged.verdict) == ([FULL.first], 12, "too_few_runs")
