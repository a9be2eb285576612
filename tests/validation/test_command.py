"""`python -m validation` as a developer runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import ROOT

RUNS = ROOT / "fixtures" / "kernel"


def validate(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "validation", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_tables_and_page(tmp_path: Path) -> None:
    ended = validate("--data", RUNS, "--no-closed-forms", "--no-ns2", "--write", tmp_path / "page.md")
    assert ended.returncode == 0, ended.stderr
    assert "S9-reno" in ended.stdout
    assert "Linux: " in ended.stdout
    assert "Two flows at one bottleneck, repeated" in ended.stdout
    page = (tmp_path / "page.md").read_text()
    assert "| S2-reno |" in page
    assert "(images/validation-reno.svg)" in page
    assert (tmp_path / "images" / "validation-reno.svg").read_text().startswith("<svg")


def test_json_is_one_document_of_findings() -> None:
    ended = validate("--data", RUNS / "S2-reno", "--no-closed-forms", "--no-ns2", "--json")
    document = json.loads(ended.stdout)
    assert {row["section"] for row in document["findings"]} == {"validation"}
    metrics = {row["metric"] for row in document["findings"]}
    assert {"goodput", "retransmissions", "cwnd_error", "mean goodput", "mean Jain index"} <= metrics
    assert len(document["repeated"]["rows"]) == 3
    assert 0 <= document["repeated"]["pairs_within"] < 0.5


def test_a_folder_without_runs_is_the_users_mistake(tmp_path: Path) -> None:
    ended = validate("--data", tmp_path)
    assert ended.returncode == 2
    assert "holds no recorded run" in ended.stderr
