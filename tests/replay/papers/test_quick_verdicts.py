"""Verdicts under `--quick`: those of the golden file, which never contradict those of a full run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hindflight.replay.papers.catalogue import PAPERS, paper_of
from hindflight.replay.papers.claims import claims_of
from hindflight.replay.papers.judge import QUICK, judge_claim
from hindflight.replay.papers.lab import Bench
from tests.replay.papers.quick_verdicts import GOLDEN

PAGE = Path(__file__).resolve().parents[3] / "docs" / "papers.md"
VERDICTS = json.loads(GOLDEN.read_text())
FAST = {
    "000": ("000-C03", "000-C04", "000-C07", "000-C10", "000-C11", "000-C14", "000-C25", "000-C34"),
    "001": ("001-C27", "001-C28", "001-C29"),
    "002": ("002-C02", "002-C21"),
    "003": ("003-C01", "003-C02", "003-C03", "003-C04", "003-C08", "003-C17", "003-C21", "003-C37"),
    "004": ("004-C06", "004-C15", "004-C28"),
}
"""Claims by runs that are judged again in every test run, besides all by units and arithmetic: a few seconds each."""


@pytest.mark.parametrize("name", PAPERS)
def test_verdicts_are_those_of_the_golden_file(name: str) -> None:
    paper, bench = paper_of(name), Bench()
    for claim in claims_of(paper.number):
        if claim.by != "engine" or claim.claim_id in FAST.get(paper.number, ()):
            verdict = judge_claim(paper, claim, QUICK, bench).verdict
            assert verdict == VERDICTS[claim.claim_id], (
                f"{claim.claim_id}: python -m tests.replay.papers.quick_verdicts"
            )


def test_every_claim_has_a_verdict() -> None:
    claims = [claim.claim_id for name in PAPERS for claim in claims_of(paper_of(name).number)]
    assert sorted(VERDICTS) == sorted(claims)


@pytest.mark.parametrize("name", PAPERS)
def test_a_quick_verdict_is_that_of_a_full_run_or_too_few_runs(name: str) -> None:
    section = PAGE.read_text().partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    if "Verdicts are as `--full` judges them." not in section:
        pytest.skip(f"docs/papers.md has no full run of {name}")
    rows = re.findall(r"^\| (\d{3}-C\d+) \|(?:[^|]*\|){3} ([^|]+) \|", section, re.MULTILINE)
    assert sorted(claim_id for claim_id, _ in rows) == [claim.claim_id for claim in claims_of(paper_of(name).number)]
    for claim_id, verdict in rows:
        assert VERDICTS[claim_id] in {verdict.replace(" ", "_"), "too_few_runs"}, claim_id
