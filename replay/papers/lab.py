"""Runs the cells of a paper and keeps what they showed, one row of `runs` per flow and seed.

Depends on scenarios and jobs; knows no claim. All cells meet the same channel with the same seed.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from hindflight.replay.catalogue import catalogue
from hindflight.replay.experiment.engine_inputs import Job, engine_config
from hindflight.replay.experiment.run import Configuration, run_configurations, thread_count
from hindflight.replay.papers.model import Cell, Change, Point, Reading
from hindflight.replay.papers.statistics import Samples, mean
from hindflight.replay.scenario.model import Scenario, parse_scenario
from hindflight.toolkit.errors import ScenarioError

if TYPE_CHECKING:
    import pyarrow as pa

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[Row]
"""The rows of `runs` of one run: the flow under test first, then what shared its path."""
Metric: TypeAlias = str | Callable[[Rows], float]
"""A column of the flow under test, or a function of all rows of a run."""
Tables: TypeAlias = "dict[str, pa.Table]"
"""The tables of a recorded run."""
Measure: TypeAlias = "Callable[[Tables], float]"
"""A number from the tables of a recorded run."""
Seen = TypeVar("Seen")
Look: TypeAlias = "Callable[[Tables], Seen]"
"""What a judge keeps of the tables of a recorded run: smaller than they are, since it is kept to the end."""

DEFAULT = Reading("default", "the defaults of this reproduction")
AT_ONCE = 64
"""Runs between two reports of progress."""
MEASURED_AT_ONCE = 8
"""Recorded runs whose tables are in memory at the same time."""


@dataclass(slots=True)
class Bench:
    """The runs of all papers so far, by cell and seed, so that no run is made twice."""

    threads: int | None = None
    on_runs: Callable[[int], None] = lambda _: None
    rows: dict[Cell, dict[int, Rows]] = field(default_factory=dict)
    measured: dict[tuple[Cell, int, str], float] = field(default_factory=dict)
    observed: dict[tuple[Cell, int, str], Any] = field(default_factory=dict)

    def make(self, cells: Iterable[Cell], seeds: range) -> None:
        """Make the runs of `cells` with `seeds` that were not made yet."""
        missing = []
        for cell in dict.fromkeys(cells):
            made = self.rows.setdefault(cell, {})
            missing += [(cell, seed) for seed in seeds if seed not in made]
        batches = [missing[start : start + AT_ONCE] for start in range(0, len(missing), AT_ONCE)]
        workers = min(len(batches), thread_count(self.threads))
        if workers < 2:
            for batch in batches:
                self._make(batch, self.threads)
            return
        # Each worker prepares its next batch while the others are in the engine, so no core waits for the end of one.
        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(lambda batch: self._make(batch, 1), batches):
                pass

    def _make(self, batch: Sequence[tuple[Cell, int]], threads: int | None) -> None:
        configurations = [Configuration(config_of(cell, seed), seed, recorded=False) for cell, seed in batch]
        found: list[Rows] = [[] for _ in batch]
        for row in run_configurations(configurations, threads=threads)["runs"].to_pylist():
            found[row["run_id"] - 1].append(row)
        for (cell, seed), rows in zip(batch, found, strict=True):
            self.rows[cell][seed] = rows
        self.on_runs(len(batch))

    def measure(self, wanted: Iterable[tuple[Cell, int]], measure: Measure, *, segments: bool) -> None:
        """Record the runs among `wanted` that `measure` was not taken of yet, and take it."""
        name = measure.__qualname__
        missing = [each for each in dict.fromkeys(wanted) if (*each, name) not in self.measured]
        for start in range(0, len(missing), MEASURED_AT_ONCE):
            batch = missing[start : start + MEASURED_AT_ONCE]
            tables = self.record(batch, segments=segments)
            self.measured.update({(*each, name): float(measure(found)) for each, found in tables.items()})
            self.on_runs(len(batch))

    def observe(self, wanted: Iterable[tuple[Cell, int]], look: Look[Seen], *, segments: bool) -> list[Seen]:
        """Record the runs among `wanted` that `look` has not seen yet, and return what it saw of each."""
        name, wanted = look.__qualname__, list(wanted)
        missing = [each for each in dict.fromkeys(wanted) if (*each, name) not in self.observed]
        for start in range(0, len(missing), MEASURED_AT_ONCE):
            batch = missing[start : start + MEASURED_AT_ONCE]
            tables = self.record(batch, segments=segments)
            self.observed.update({(*each, name): look(found) for each, found in tables.items()})
            self.on_runs(len(batch))
        return [self.observed[*each, name] for each in wanted]

    def record(self, wanted: Sequence[tuple[Cell, int]], *, segments: bool) -> dict[tuple[Cell, int], Tables]:
        """Return the tables of each of these runs: with `segments` all of them, else the state of the senders."""
        configurations = [Configuration(config_of(cell, seed), seed, recorded=True) for cell, seed in wanted]
        tables = run_configurations(configurations, threads=self.threads, segments=segments)
        return {
            each: {name: _rows_of(table, run_id) for name, table in tables.items()}
            for run_id, each in enumerate(wanted, 1)
        }


def _rows_of(table: pa.Table, run_id: int) -> pa.Table:
    """Return the rows of one run of a table in which the runs follow each other."""
    numbers = table["run_id"].to_numpy()
    start, end = np.searchsorted(numbers, [run_id, run_id + 1])
    return table.slice(start, end - start)


@dataclass(frozen=True, slots=True)
class Lab:
    """What a judge or a figure sees: the first `runs` seeds of every cell, under one reading.

    `used` collects the cells that were asked for, `taken` how many runs of them. `quick` asks for fewer points of a
    sweep.
    """

    bench: Bench
    runs: int
    quick: bool
    reading: Reading = DEFAULT
    used: set[Cell] = field(default_factory=set)
    taken: set[int] = field(default_factory=set)

    def use(self, cells: Iterable[Cell], runs: int | None = None) -> None:
        """Note that `runs` runs of each of `cells` are looked at, or those of all seeds."""
        self.used.update(cells)
        self.taken.add(self.runs if runs is None else runs)

    def read(self, cell: Cell) -> Cell:
        """Return `cell` under the reading."""
        return _read(cell, self.reading)

    def run(self, *cells: Cell) -> None:
        """Make the runs of `cells` together, which is faster than one cell after another."""
        self.use(cells)
        self.bench.make((self.read(cell) for cell in cells), self.seeds)

    @property
    def seeds(self) -> range:
        """Return the seeds of the runs."""
        return range(1, self.runs + 1)

    def rows(self, cell: Cell) -> list[Rows]:
        """Return the rows of `runs` of every run of `cell`, in the order of the seeds."""
        self.run(cell)
        made = self.bench.rows[self.read(cell)]
        return [made[seed] for seed in self.seeds]

    def sample(self, cell: Cell, metric: Metric) -> Samples:
        """Return `metric` of every run of `cell`, in the order of the seeds."""
        rows = self.rows(cell)
        if isinstance(metric, str):
            return np.array([float(each[0][metric]) for each in rows])
        return np.array([float(metric(each)) for each in rows])

    def recorded(self, cell: Cell, seed: int = 1, *, segments: bool = False) -> Tables:
        """Return the tables of one recorded run: with `segments` all of them, else the state of the senders."""
        self.use([cell], 1)
        each = (self.read(cell), seed)
        return self.bench.record([each], segments=segments)[each]

    def observe(
        self, cells: Iterable[Cell], look: Look[Seen], *, maximum: int | None = None, segments: bool = True
    ) -> list[list[Seen]]:
        """Return what `look` sees of the tables of every run of each of `cells`, of the first `maximum` seeds.

        The tables are all, or without `segments` the states of the senders.

        `look` is a named function; its name is the key under which what it saw is kept.
        """
        cells = list(cells)
        seeds = self.seeds[:maximum]
        self.use(cells, len(seeds))
        seen = self.bench.observe(
            [(read, seed) for read in map(self.read, cells) for seed in seeds], look, segments=segments
        )
        return [seen[start : start + len(seeds)] for start in range(0, len(seen), len(seeds))]

    def measure(self, cell: Cell, measure: Measure, *, segments: bool = False) -> Samples:
        """Return `measure` of the recorded tables of every run of `cell`, in the order of the seeds.

        `measure` is a named function; its name is the key under which its values are kept.
        """
        self.use([cell])
        key = self.read(cell)
        self.bench.measure([(key, seed) for seed in self.seeds], measure, segments=segments)
        return np.array([self.bench.measured[key, seed, measure.__qualname__] for seed in self.seeds])


def mean_point(series: str, x: float | None, samples: Samples, label: str = "") -> Point:
    """Return the mean of `samples` with its 95 % interval as a point of a figure."""
    found = mean(samples)
    return Point(series, x, found.value, found.low, found.high, label)


@cache
def scenario_text(name: str) -> str:
    """Return the shipped scenario file `name` as text."""
    return (files("hindflight.replay.papers") / "data" / "scenarios" / f"{name}.toml").read_text(encoding="utf-8")


@cache
def _document(name: str) -> dict[str, Any]:
    """Return the shipped scenario file `name`, which nobody may change."""
    return tomllib.loads(scenario_text(name))


@cache
def _read(cell: Cell, reading: Reading) -> Cell:
    """Return `cell` under `reading`."""
    changes = (change for change in reading.of(cell) if concerns(change, cell.scenario))
    chain = dict(reading.chains).get(cell.proxy)
    return cell.but(*changes, proxy=chain if chain and _has_chain(cell.scenario, chain) else None)


def _has_chain(scenario: str, chain: str) -> bool:
    """Return whether a scenario file has all proxies of `chain`; others of the paper may lack some."""
    return set(chain.split("+")) <= {proxy["name"] for proxy in _document(scenario).get("proxy", ())}


def concerns(change: Change, scenario: str) -> bool:
    """Return whether a scenario file has the table that `change` changes; others of the paper may lack it."""
    try:
        _holder(_document(scenario), change[0])
    except KeyError:
        return False
    return True


def changed(document: Mapping[str, Any], changes: Iterable[Change]) -> dict[str, Any]:
    """Return a scenario's document with `changes`. ScenarioError for a path that leads nowhere."""
    result = copy.deepcopy(dict(document))
    for path, value in changes:
        try:
            holder, key = _holder(result, path)
        except KeyError as error:
            raise ScenarioError(f"{path}: no such table in scenario {document.get('name')!r}") from error
        if value is None:
            holder.pop(key, None)
        else:
            holder[key] = _thawed(value)
    return result


def _thawed(value: Any) -> Any:
    """Return a value of a change as TOML has it: `model.table` writes a table as a tuple of pairs."""
    if not isinstance(value, tuple):
        return value
    if value and all(isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str) for each in value):
        return {key: _thawed(each) for key, each in value}
    return [_thawed(each) for each in value]


def _holder(document: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """Return the table that holds the last key of `path`, and that key; KeyError if a table is missing."""
    *parents, key = path.split(".")
    table: Any = document
    for part in parents:
        table = _element(table, part) if isinstance(table, list) else table[part]
    if not isinstance(table, dict):
        raise KeyError(path)
    return table, key


def _element(tables: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for number, table in enumerate(tables):
        if name in {table.get("name"), str(number)}:
            return table
    raise KeyError(name)


@cache
def scenario_of(name: str, changes: tuple[Change, ...]) -> Scenario:
    """Return a shipped scenario with `changes`, validated. ScenarioError names what is wrong."""
    document = changed(_document(name), changes)
    return parse_scenario(document, name, tuple(variant.name for variant in catalogue()), Path())


def config_of(cell: Cell, seed: int) -> dict[str, Any]:
    """Return the engine's configuration of one run of `cell`. Nobody may change it: runs share it."""
    scenario = scenario_of(cell.scenario, cell.changes)
    drawn = any(link.channel is not None for link in scenario.links)
    return _config(cell, seed if drawn else 0)


@lru_cache(maxsize=256)
def _config(cell: Cell, seed: int) -> dict[str, Any]:
    """Return the same; `seed` matters only where a channel is drawn from it."""
    job = Job(cell.variant, cell.proxy, "what_if", "model", seed, recorded=False)
    return engine_config(scenario_of(cell.scenario, cell.changes), job, {})
