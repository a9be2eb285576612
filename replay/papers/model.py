"""What a reproduced paper consists of: claims, cells of its experiments, readings, figures, and the results of judging.

Runs nothing. `judge.py` says how claims are judged, `verdicts.py` has the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

Lab: TypeAlias = Any
"""What a judge and a figure are given: `lab.Lab`, which depends on this module."""
Kind = Literal["value", "ratio", "range", "ordering", "shape", "knee"]
Origin = Literal["stated", "inferred"]
By = Literal["engine", "unit", "arithmetic", "not testable"]
State = Literal["yes", "no", "partly", "undecided"]
Verdict = Literal["reproduced", "partly", "not_reproduced", "not_testable", "too_few_runs"]

Change: TypeAlias = tuple[str, Any]
"""A dotted path into a scenario file and its new value; None deletes the key. An element of a list is named by its
`name` or its number: `links.W-T.loss.per`. A list is a tuple, a table what `table` returns."""


def table(**keys: Any) -> tuple[tuple[str, Any], ...]:
    """Return a table as the value of a change."""
    return tuple(keys.items())


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a paper, in our words. `accept` are the bounds of a value, ratio, range or knee, in `unit`."""

    claim_id: str
    figure: str
    scenario: str
    metric: str
    kind: Kind
    expected: str
    tolerance: str
    unit: str
    origin: Origin
    by: By
    text: str
    accept: tuple[float, float] | None = None
    untestable: str = ""
    """Why it is not testable, where it is not."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Return `accept`; ValueError for a claim without bounds."""
        if self.accept is None:
            raise ValueError(f"{self.claim_id} has no numeric bounds")
        return self.accept


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number from runs, its 95 % interval, and its 99.9 % interval, by which a quick verdict is checked."""

    value: float
    low: float
    high: float
    low_999: float
    high_999: float


@dataclass(frozen=True, slots=True)
class Part:
    """One cell of a claim: its state at 95 %, and the state at 99.9 %.

    `more` is about how many times as many runs would be enough (see `verdicts.py`): 1 if these are.
    """

    name: str
    state: State
    strict_state: State
    value: float | None = None
    low: float | None = None
    high: float | None = None
    more: float = 1.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with its parts, its verdict, and the maximum number of runs of one of its cells (0: none was needed).

    `reading` is the name of the reading under which the runs were made. `reason` says why it is not reproduced,
    `measured` has what the mechanism of an experiment showed in these runs.
    """

    claim: Claim
    reading: str
    parts: tuple[Part, ...]
    verdict: Verdict
    runs: int
    reason: str = ""
    measured: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cell:
    """One configuration of a paper's experiment: a shipped scenario, a variant, proxies, and changes to the file."""

    scenario: str
    variant: str
    proxy: str = "none"
    changes: tuple[Change, ...] = ()

    def get(self, path: str, default: Any = None) -> Any:
        """Return what the cell sets `path` to."""
        return dict(self.changes).get(path, default)

    def but(self, *changes: Change, variant: str | None = None, proxy: str | None = None) -> Cell:
        """Return the cell with more changes, or another variant or proxy."""
        return replace(
            self,
            changes=(*self.changes, *changes),
            variant=self.variant if variant is None else variant,
            proxy=self.proxy if proxy is None else proxy,
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read what a paper leaves open: changes to its scenarios.

    `changes` follow a cell's own changes and prevail; those of a table that the scenario does not have are left out. A
    function returns those of a cell. The `literal` reading takes everything that the text states literally; its
    verdicts are counted separately. `measure` names what a judge measures instead of its default.
    """

    name: str
    text: str
    changes: tuple[Change, ...] | Callable[[Cell], tuple[Change, ...]] = ()
    literal: bool = False
    measure: str = ""
    chains: tuple[tuple[str, str], ...] = ()
    """Chains of proxies that take the place of others: each pair is the one replaced and the one that runs."""

    def of(self, cell: Cell) -> tuple[Change, ...]:
        """Return the changes to `cell`."""
        return self.changes(cell) if callable(self.changes) else self.changes


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What is measured next to a claim to show why it holds under a reading or does not: its name with the unit, and
    the numbers by what they are of."""

    name: str
    measure: Callable[[Lab], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is varied to find out why a claim does not reproduce: the assumption, its readings, what we conclude, and
    what is measured next to the claim under each reading."""

    assumption: str
    readings: tuple[Reading, ...]
    text: str = ""
    mechanism: Mechanism | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One default of a paper's scenarios that the text does not fix, or where we leave it: name, value, why."""

    name: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a figure. `label` replaces `x` on an axis of categories."""

    series: str
    x: float | None
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a paper with its axes; `draw` runs what it needs and returns its points."""

    key: str
    title: str
    x: str
    y: str
    mark: Literal["line", "bar", "step"]
    draw: Callable[[Lab], list[Point]]


JudgeFunction = Callable[[Lab, Claim], list[Part]]


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper as it is reproduced. `scenarios` are its shipped scenario files, `extras` go beyond its figures."""

    number: str
    name: str
    title: str
    citation: str
    scenarios: tuple[str, ...]
    choices: tuple[Choice, ...]
    readings: tuple[Reading, ...]
    judges: Mapping[str, JudgeFunction]
    figures: tuple[Figure, ...]
    experiments: Mapping[str, Experiment]
    extras: tuple[Figure, ...] = ()
    not_built: tuple[str, ...] = ()
    """What would go beyond the paper and is not built, each with the reason."""
    beyond: tuple[str, ...] = ()
    """What goes beyond the paper's figures and needs no `--extra`, each with the claim or figure that has it."""
    min_runs: int = 0
    min_runs_of: Mapping[str, int] = field(default_factory=dict)
    """The paper's own number of runs, of all claims and of some: `--full` never takes fewer."""
    max_runs: int = 1000
    max_quick_runs: int = 40
    """Maximum number of runs of a configuration under `--full` and `--quick`."""


class Judges(dict[str, JudgeFunction]):
    """The judges of a paper by claim; calling it with claim ids registers a function for them."""

    def __call__(self, *claim_ids: str) -> Callable[[JudgeFunction], JudgeFunction]:
        """Return a decorator that registers a judge for each of `claim_ids`."""

        def register(function: JudgeFunction) -> JudgeFunction:
            for claim_id in claim_ids:
                if claim_id in self:
                    raise ValueError(f"{claim_id} has two judges")
                self[claim_id] = function
            return function

        return register
