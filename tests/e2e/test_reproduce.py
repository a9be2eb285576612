"""`hindflight reproduce`: reports, scenarios and claims.json in a folder, claims on stdout."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import hindflight as hf
from docs.scripts.make_papers_page import page
from hindflight.cli.app import main
from hindflight.replay.papers import claims, judge
from hindflight.replay.papers.haps_split import PAPER
from hindflight.toolkit.seal import is_unchanged

FEW = ("000-C01", "000-C03", "000-C37")


@pytest.fixture(autouse=True)
def few_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three claims, one figure, two runs: the whole way in a second."""
    chosen = tuple(claim for claim in claims.claims_of("000") if claim.claim_id in FEW)
    monkeypatch.setattr(claims, "claims_of", lambda _number: chosen)
    few = replace(judge.QUICK, first=2, maximum=2, figures=2)
    monkeypatch.setattr(judge, "QUICK", few)
    monkeypatch.setattr(judge, "FULL", replace(few, readings=2, quick=False))
    short = replace(PAPER, figures=PAPER.figures[:1], readings=PAPER.readings[:2], experiments={})
    monkeypatch.setattr("hindflight.replay.papers.haps_split.PAPER", short)


def run(*arguments: str) -> int:
    """Run the command line without the signal handlers of `hindflight.__main__`, which would outlive the test."""
    return main(list(arguments))


def test_a_paper_becomes_a_report_scenarios_and_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run("reproduce", "haps-split", "-o", str(out), "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert [row["claim_id"] for row in shown] == list(FEW)
    assert {row["claim_id"]: row["verdict"] for row in shown} == {
        "000-C01": "reproduced",
        "000-C03": "too_few_runs",
        "000-C37": "not_testable",
    }
    document = json.loads((out / "claims.json").read_text())
    assert document["claims"] == shown
    text = (out / "haps-split.html").read_text()
    assert "Figure 4: time for 5 MB from W to G" in text
    assert "With our defaults, of 3 claims: 1 reproduced, 1 too few runs, 1 not testable." in text
    for name in ("haps-split.html", "claims.json", "scenarios/haps-split.toml", "scenarios/haps-split-return.toml"):
        assert is_unchanged(out / name), name
    assert run("reproduce", "haps-split", "-o", str(out)) == 0, "its own files are replaced"


def test_a_file_of_the_user_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "haps-split.html").write_text("mine")
    assert run("reproduce", "haps-split", "-o", str(tmp_path)) == 2
    assert "haps-split.html exists" in capsys.readouterr().err
    assert (tmp_path / "haps-split.html").read_text() == "mine"
    assert not (tmp_path / "claims.json").exists()


def test_an_unknown_paper_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("reproduce", "haps", "-o", str(tmp_path / "out")) == 2
    assert "no paper is called 'haps'; choose one of haps-split" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_claims_are_judged_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run("reproduce", "000-C01,000-C37", "-o", str(out), "--json") == 0
    assert [row["claim_id"] for row in json.loads(capsys.readouterr().out)] == ["000-C01", "000-C37"]
    text = (out / "haps-split.html").read_text()
    assert "hindflight reproduce haps-split" not in text
    assert "Figure 4" not in text
    for name in ("000-C99", "009-C01"):
        assert run("reproduce", name, "-o", str(out)) == 2
    error = capsys.readouterr().err
    assert "no claim is called '000-C99'" in error
    assert "choose from 000-C01 to 000-C37" in error
    assert "no claim is called '009-C01'" in error


def test_the_page_has_the_last_run_of_each_claim() -> None:
    done = hf.reproduce("haps-split", full=True)
    whole = {"seconds": done.seconds, "claims": done.claims, "full": True}
    again = [dict(row, value=500.0) for row in done.claims if row["claim_id"] == "000-C01"]
    text = page([whole, {"seconds": {"haps-split": 1.0}, "claims": again, "full": True}])
    assert "500 pkts" in text
    assert text.count("000-C03") == page([whole]).count("000-C03")
    assert text.count("| **all** | 3 |") == 2


def test_a_full_run_has_readings_and_the_page_counts_twice() -> None:
    done = hf.reproduce("haps-split", full=True)
    assert {row["reading"] for row in done.claims} == {"default", "literal", "T-G once"}
    assert done.arrow()["claims"].num_rows == 9
    assert done.arrow()["points"].num_rows > 0
    text = page([{"seconds": done.seconds, "claims": done.claims, "full": True}])
    assert text.count("| **all** | 3 |") == 2
