"""The report and its exports on the command line, from one small replay."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hindflight.documents import names_of
from hindflight.toolkit.schema import FINDING_SECTIONS
from hindflight.toolkit.workspace import Workspace
from tests.e2e.conftest import FLOW, ROOT, Command, error_line, words

CAPTURE = FLOW / "snd.pcap.xz"
VARIANTS, SEEDS = ("newreno", "cubic"), 2
MAGIC = {"png": b"\x89PNG\r\n", "svg": b"<svg"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replayed")
    for line in (
        ("scenario", "init", CAPTURE, "-o", folder / "s.toml", "--seeds", SEEDS, "--variants", ",".join(VARIANTS)),
        ("ingest", CAPTURE, "-w", folder / "ws"),
        ("replay", folder / "s.toml", "-w", folder / "ws"),
    ):
        subprocess.run(words(*line), cwd=ROOT, check=True, capture_output=True)
    return folder / "ws"


def test_findings_of_a_replay_belong_to_sections_of_the_report(workspace: Path) -> None:
    sections = set(Workspace.open(workspace).table("findings")["section"].to_pylist())
    assert sections <= set(FINDING_SECTIONS)
    assert sections >= {"summary", "key_numbers", "self_check", "what_if", "unknown"}


@pytest.mark.parametrize("form", ["png", "svg"])
def test_report_exports_charts_and_csv(hindflight: Command, workspace: Path, tmp_path: Path, form: str) -> None:
    ended = hindflight(
        "report",
        workspace,
        "-o",
        "r.html",
        "--charts",
        "charts",
        "--charts-format",
        form,
        "--csv",
        "runs.csv",
        "--json",
    )
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert (document["report"], document["csv"]) == ("r.html", "runs.csv")
    assert (tmp_path / "r.html").read_text().startswith("<!")
    assert sorted(document["charts"]) == sorted(f"charts/{path.name}" for path in (tmp_path / "charts").iterdir())
    assert len(document["charts"]) >= 9
    for name in document["charts"]:
        assert (tmp_path / name).suffix == f".{form}"
        assert (tmp_path / name).read_bytes().startswith(MAGIC[form])
    rows = list(csv.DictReader((tmp_path / "runs.csv").read_text().splitlines()))
    assert {row["purpose"] for row in rows} == {"what_if"}
    assert {row["variant"] for row in rows} >= set(VARIANTS)
    assert sum(row["variant"] == "cubic" for row in rows) == 3 * (SEEDS + 1), (
        "three placements, the trace and its seeds"
    )


def test_invalid_exports_are_refused(hindflight: Command, tmp_path: Path) -> None:
    assert hindflight("ingest", CAPTURE, "-w", "ws").returncode == 0
    ended = hindflight("report", "ws", "-o", "r.html", "--csv", "runs.csv")
    assert ended.returncode == 2
    assert error_line(ended) == "No variant was replayed, so there are no what-if runs to write"
    assert not (tmp_path / "r.html").exists()
    ended = hindflight("report", "ws", "-o", "r.html", "--charts", "charts", "--charts-format", "gif")
    assert ended.returncode == 2
    assert "gif" in error_line(ended)


def test_report_is_written_as_markdown_json_and_pdf(hindflight: Command, workspace: Path, tmp_path: Path) -> None:
    ended = hindflight("report", workspace, "-o", "r.md", "--charts", "charts", "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["format"] == "md"
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^]]*\]\(<([^>]+)>\)", text)
    assert len(pictures) == len(list((tmp_path / "charts").iterdir()))
    assert all(Path(picture).is_file() for picture in pictures)
    assert "## Findings" in text
    assert hindflight("report", workspace, "-o", "r.json").returncode == 0
    document = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert document["sections"][0]["key"] == "findings"
    printed = hindflight("report", workspace, "-o", "r.pdf")
    if shutil.which("chromium") is None:
        assert printed.returncode == 3
        assert "needs Chromium" in error_line(printed)
        return
    assert printed.returncode == 0, printed.stderr
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF-")
    again = hindflight("report", workspace, "-o", "r.md")
    assert again.returncode == 0, "hindflight replaces what it wrote"


def test_report_on_two_workspaces_says_what_changed(hindflight: Command, workspace: Path, tmp_path: Path) -> None:
    assert hindflight("ingest", CAPTURE, "-w", "other", "--to", "40").returncode == 0
    ended = hindflight("report", workspace, "other", "-o", "two.html")
    assert ended.returncode == 0, ended.stderr
    page = (tmp_path / "two.html").read_text(encoding="utf-8")
    assert "From ws to other: change with its 95 % interval" in page
    assert re.search(r">Subject<.*>ws<.*>other<.*>Change<", page)
    ids = re.findall(r' id="([^"]+)"', page.split("<script", 1)[0])
    assert len(ids) == len(set(ids))
    links = re.findall(r'href="#([^"]+)"', page.split("<script", 1)[0])
    assert set(links) <= set(ids)


def test_workspaces_are_named_by_what_sets_them_apart() -> None:
    usual = [Path("/a/whatif/workspace"), Path("/a/b/workspace"), Path("/c/b/workspace")]
    assert names_of(usual) == ["a/whatif", "a/b", "c/b"]
    assert names_of([Path("/a/demo/workspace")]) == ["demo"]
    assert names_of([Path("/x/ws"), Path("/x/ws")]) == ["ws", "ws (2)"], "a name twice would hide a column"


def test_report_on_a_capture_at_the_receiver_claims_nothing_about_the_link(hindflight: Command, tmp_path: Path) -> None:
    assert hindflight("ingest", FLOW / "rcv.pcap.xz", "-w", "ws").returncode == 0
    assert hindflight("report", "ws", "-o", "r.md").returncode == 0
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    findings = text[text.index("## Findings") : text.index("## Outages")]
    assert "The capture was taken at the receiver" in findings
    assert "--at-sender --flow 1" in findings
    for untrue in ("round trips took", "What limited its sender", " were lost: ", "No outage"):
        assert untrue not in text, untrue
    assert "Whether there were any is not known" in text


def test_report_on_a_flight_opens_with_findings(hindflight: Command, tmp_path: Path) -> None:
    """Nothing was replayed: the findings are made for the report, and the workspace stays as it is."""
    assert hindflight("ingest", CAPTURE, "-w", "ws").returncode == 0
    before = (tmp_path / "ws" / "manifest.json").read_bytes()
    assert hindflight("report", "ws", "-o", "r.json").returncode == 0
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["sections"]
    said = {section["key"]: json.dumps(section, ensure_ascii=False) for section in found}
    for words_of in (
        "the captured flow delivered",
        "What limited its sender, by time: ",
        "data packets, ",
        " were lost: ",
        "It retransmitted ",
        "Its round trips took ",
        "95 % interval",
        "hindflight verdicts ws --flow 1",
    ):
        assert words_of in said["findings"], words_of
    for chart in ("throughput", "cwnd", "losses", "rtt"):
        assert f"flow-1-{chart}" in said["findings"]
        assert f"flow-1-{chart}" in said["what_happened"]
    assert "Bottleneck rate" in said["what_happened"]
    assert "hindflight channel extract ws --flow 1 -o channel.parquet" in said["what_happened"]
    assert "self_check" not in said, "nothing was replayed"
    assert "hindflight whatif" in said["what_if"]
    assert (tmp_path / "ws" / "manifest.json").read_bytes() == before
