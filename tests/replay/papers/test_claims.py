"""The claims: those of the list, each with a judge, in readable scenarios with sources."""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from hindflight.replay.catalogue import catalogue
from hindflight.replay.papers.aerotcp.cells import AERO, ten
from hindflight.replay.papers.catalogue import PAPERS, paper_of
from hindflight.replay.papers.claims import claims_of
from hindflight.replay.papers.hybrid_handover.cells import DELAYS, SHORT_BREAK_S, handovers
from hindflight.replay.papers.hybrid_handover.cells import cell as cell_of
from hindflight.replay.papers.hybrid_handover.judges import _alike
from hindflight.replay.papers.hybrid_handover.readings import QUEUE_LOST
from hindflight.replay.papers.lab import DEFAULT, Bench, Lab, changed, config_of, scenario_of, scenario_text
from hindflight.replay.papers.model import Cell, Paper, Reading, table
from hindflight.replay.papers.onboard_split.cells import with_flows
from hindflight.replay.papers.onboard_split.readings import BOTH_SATELLITES
from hindflight.replay.scenario.model import load_scenario
from hindflight.replay.scenario.proxies import BufferSize
from hindflight.toolkit.errors import HindflightError, ScenarioError

ROOT = Path(__file__).resolve().parents[3]
BOUNDS = Path(__file__).with_name("bounds.tsv")
"""Bounds of the claims as they were compared with the list: a change of a tolerance shows here."""
LIST = ROOT.parent / "shared" / "spec" / "claims.tsv"
KINDS = {"absolute": {"value", "range"}}
SOURCED = re.compile(r"#.*(paper, (section|figure|table|abstract)|not given)")
UNSOURCED_KEYS = {"name", "model"}


@pytest.fixture(params=PAPERS, scope="module")
def paper(request: pytest.FixtureRequest) -> Paper:
    return paper_of(request.param)


def listed(number: str) -> dict[str, dict[str, str]]:
    if not LIST.is_file():
        pytest.skip(f"{LIST} is not there: the list of claims is not part of the repository")
    with LIST.open(encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["id"]: row for row in rows if row["paper"] == number}


def test_claims_are_those_of_the_list(paper: Paper) -> None:
    rows = listed(paper.number)
    claims = {claim.claim_id: claim for claim in claims_of(paper.number)}
    assert list(claims) == list(rows)
    for claim_id, row in rows.items():
        claim = claims[claim_id]
        assert claim.kind in KINDS.get(row["kind"], {row["kind"]}), claim_id
        assert (claim.origin, claim.by) == (row["origin"], row["by"]), claim_id
        assert claim.text not in row.values(), f"{claim_id} is in the words of the list"


def test_every_claim_that_can_be_tested_has_a_judge(paper: Paper) -> None:
    testable = {claim.claim_id for claim in claims_of(paper.number) if claim.by != "not testable"}
    assert set(paper.judges) == testable
    assert set(paper.experiments) <= testable


def test_a_claim_that_cannot_be_tested_says_why(paper: Paper) -> None:
    for claim in claims_of(paper.number):
        assert bool(claim.untestable) == (claim.by == "not testable"), claim.claim_id


def test_numbers_have_bounds(paper: Paper) -> None:
    for claim in claims_of(paper.number):
        if claim.by == "engine" and claim.kind in {"ratio", "range", "knee"}:
            low, high = claim.bounds
            assert low < high, claim.claim_id


def test_bounds_are_those_that_were_compared_with_the_list(paper: Paper) -> None:
    found = {c.claim_id: c.accept for c in claims_of(paper.number) if c.accept is not None}
    with BOUNDS.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["claim_id"].startswith(paper.number)]
    assert list(found) == [row["claim_id"] for row in rows]
    for row in rows:
        assert found[row["claim_id"]] == pytest.approx((float(row["low"]), float(row["high"]))), row["claim_id"]


def test_bounds_are_the_tolerances_of_the_list(paper: Paper) -> None:
    rows = listed(paper.number)
    compared = 0
    for claim in claims_of(paper.number):
        row = rows[claim.claim_id]
        bounds = bounds_of(row["expected"], row["tolerance_suggestion"])
        if claim.accept is not None and bounds is not None:
            assert claim.accept == pytest.approx(bounds, rel=1e-3), claim.claim_id
            compared += 1
    assert compared > 0


def bounds_of(expected: str, tolerance: str) -> tuple[float, float] | None:
    """Bounds from a number and a tolerance of the list; None where they are in words."""
    if interval := re.match(r"([\d.]+)\.\.([\d.]+)", tolerance):
        return float(interval[1]), float(interval[2])
    middle = re.fullmatch(r"~?([\d.]+)( pkt)?", expected)
    width = re.fullmatch(r"\+-([\d.]+)(%?)( pkt)?", tolerance)
    if middle is None or width is None:
        return None
    value, share = float(middle[1]), float(width[1])
    half = value * share / 100 if width[2] else share
    return value - half, value + half


def test_one_reading_takes_everything_literally(paper: Paper) -> None:
    assert sum(reading.literal for reading in paper.readings) == 1
    names = [reading.name for reading in paper.readings]
    assert len(set(names)) == len(names)


def test_scenarios_run_as_they_are_and_say_where_each_value_comes_from(paper: Paper, tmp_path: Path) -> None:
    known = tuple(variant.name for variant in catalogue())
    for name in paper.scenarios:
        path = tmp_path / f"{name}.toml"
        path.write_text(scenario_text(name))
        assert load_scenario(path, known).name == name
        for line in scenario_text(name).splitlines():
            key = line.partition("=")[0].strip()
            if "=" in line and not line.startswith("#") and key not in UNSOURCED_KEYS:
                assert SOURCED.search(line), f"{name}: {line}"


def test_readings_can_be_run(paper: Paper) -> None:
    experiments = [reading for each in paper.experiments.values() for reading in each.readings]
    for reading in (*paper.readings, *experiments):
        for name in paper.scenarios:
            compare = tomllib.loads(scenario_text(name))["compare"]
            cell = Cell(name, compare["variants"][0], compare.get("proxies", ["none"])[0])
            config_of(Lab(Bench(), 1, quick=True, reading=reading).read(cell), 1)


DOCUMENT = {"name": "x", "links": [{"name": "up", "loss": {"per": 0.1}}], "proxy": []}


def test_changes_name_tables_by_name_or_number() -> None:
    after = changed(DOCUMENT, [("links.up.loss.per", 0.2), ("links.0.rate", "1 Mbit/s")])
    assert after["links"] == [{"name": "up", "loss": {"per": 0.2}, "rate": "1 Mbit/s"}]
    assert DOCUMENT["links"][0]["loss"] == {"per": 0.1}  # type: ignore[index]


def test_changes_write_tables_and_lists_and_delete() -> None:
    flows = (table(name="a", proxies=("p",)), table(name="b"))
    after = changed(DOCUMENT, [("flows", flows), ("links.up.loss", None)])
    assert after["flows"] == [{"name": "a", "proxies": ["p"]}, {"name": "b"}]
    assert after["links"] == [{"name": "up"}]


def test_a_change_that_leads_nowhere_is_an_error() -> None:
    with pytest.raises(ScenarioError, match=r"links\.down\.loss: no such table"):
        changed(DOCUMENT, [("links.down.loss", None)])


def test_a_reading_prevails_and_leaves_out_what_a_scenario_lacks() -> None:
    per = "links.W-U.loss.per"
    reading = Reading("r", "", ((per, 0.5), ("links.nowhere.delay", "1 s")), chains=(("none", "truck"),))
    cell = Lab(Bench(), 1, quick=True, reading=reading).read(Cell("haps-split", "newreno", "none", ((per, 0.001),)))
    assert cell.proxy == "truck"
    assert scenario_of(cell.scenario, cell.changes).links[0].forward.loss.model_dump()["per"] == 0.5


def test_a_chain_of_proxies_is_left_out_where_a_scenario_lacks_one() -> None:
    for scenario, chain in (("onboard-split", "on-board"), ("onboard-double", "first+on-board")):
        lab = Lab(Bench(1), 1, quick=True, reading=BOTH_SATELLITES)
        assert lab.read(Cell(scenario, "newreno", "on-board")).proxy == chain


def test_a_reading_loses_the_queue_of_the_link_that_breaks() -> None:
    broken = cell_of("cubic", handovers(DELAYS, SHORT_BREAK_S))
    kept, lost = (
        Lab(Bench(1), 1, quick=True, reading=reading).sample(broken, "outage_losses")[0]
        for reading in (DEFAULT, QUEUE_LOST)
    )
    assert lost > kept + 300, "CUBIC keeps hundreds of packets in the queue of 1000"
    without = cell_of("cubic", handovers(DELAYS))
    assert QUEUE_LOST.of(without) == ()


def test_a_reading_gives_each_connection_a_link() -> None:
    reading = next(
        each for each in paper_of("aerotcp").experiments["004-C23"].readings if each.name.startswith("a link")
    )
    lab = Lab(Bench(1), 1, quick=True, reading=reading)
    each = lab.read(ten(AERO, 1e-6))
    scenario = scenario_of(each.scenario, each.changes)
    assert not scenario.flows
    assert scenario.links[1].forward.rate == scenario.links[1].backward.rate == 400e3
    one = Cell("aerotcp-one", "sack")
    assert reading.of(one) == ()


def test_means_that_are_alike_may_have_an_interval_below_one() -> None:
    noise = np.random.default_rng(1).normal(0, 0.05, (2, 40))
    part = _alike("", list(1 + noise), (1.0, 1.1))
    assert part.low is not None
    assert part.low < 1 <= part.value < 1.1  # type: ignore[operator]
    assert part.state == "yes"


def test_an_unknown_paper_is_named() -> None:
    with pytest.raises(HindflightError, match="no paper is called 'haps'; choose one of haps-split"):
        paper_of("haps")


def test_flows_share_one_cache_and_a_reading_divides_it() -> None:
    five = with_flows("newreno", 5, 63)
    reading = next(each for each in paper_of("onboard-split").readings if each.name == "cache divided")
    read = Lab(Bench(1), 1, quick=False, reading=reading).read(five)
    assert [_cache(each) for each in (five, read)] == [(63, "shared"), (12, "own")]


def _cache(cell: Cell) -> tuple[int | None, str]:
    proxy = scenario_of(cell.scenario, cell.changes).proxies_of().tables[0]
    assert isinstance(proxy.receive_buffer, BufferSize)
    return proxy.receive_buffer.pkts, proxy.pool
