"""From a capture to a report on the command line: drafts, replays, invalid input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import hindflight as hf
from hindflight.toolkit import demo
from hindflight.toolkit.demo import demo_file
from tests.e2e.conftest import FLOW, Command, error_line, words

CAPTURE = FLOW / "snd.pcap.xz"


@pytest.fixture(scope="module")
def draft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("draft")
    chosen = ("--seeds", "2", "--variants", "cubic", "--proxy", "none,relay")
    arguments = words("scenario", "init", CAPTURE, "-o", "s.toml", *chosen)
    ended = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.fixture
def drafted(draft: Path, tmp_path: Path) -> Path:
    for file in draft.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path / "s.toml"


def test_whatif_writes_scenario_tables_and_report(hindflight: Command, tmp_path: Path) -> None:
    with demo_file(demo.CAPTURE) as capture, demo_file(demo.TCP_INFO) as log:
        ended = hindflight("whatif", capture, log, "-o", "out", "--seeds", "6", "--variants", "cubic", "--json")
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    checks = {(row["subject"], row["metric"]): row for row in document["findings"] if row["section"] == "self_check"}
    best = next(subject for subject, _ in checks if subject != "capture")
    # The capture is of Linux's reno; freeze-tcp, which without a forecast is the same, never flew.
    assert best == "linux-reno"
    assert checks[best, "goodput_difference"]["verdict"] == "pass"
    assert abs(checks[best, "goodput_difference"]["value"]) <= 5
    resampled = [row for row in document["findings"] if row["metric"] == "by_resampled"]
    assert resampled
    assert all(row["low"] < row["value"] < row["high"] for row in resampled), "each seed draws another channel"
    what_if = [run for run in document["runs"] if run["purpose"] == "what_if"]
    assert {run["proxy"] for run in what_if} == {"none", "sender-side", "midway"}
    assert "QUIC, and TCP inside IPsec, cannot be split" in ended.stderr
    advice = [row["text"] for row in document["findings"] if row["section"] == "recommendation"]
    assert advice[0].startswith("Use ")
    assert {run["channel_mode"] for run in what_if} == {"replayed", "resampled"}
    said = {row["metric"]: row["text"] for row in document["findings"] if row["section"] == "summary"}
    assert said["limits"].startswith("What limited its sender")
    assert said["retransmissions"].startswith("It retransmitted ")
    assert "propagation takes" in said["rtt"]
    own = said["goodput"].partition(" of payload")[0]
    assert "interval" not in own, "the goodput of its parts is correlated: too few of them are independent"
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<title>" in page
    assert best in page
    ended = hindflight("report", "out/workspace", "-o", "again.html")
    assert ended.returncode == 0, ended.stderr
    drawn = [text[text.index('id="charts"') :] for text in (page, (tmp_path / "again.html").read_text())]
    assert drawn[0] == drawn[1], "the charts are the same as drawn from the workspace"
    again = hindflight("query", "out/workspace", "SELECT count(*) AS n FROM runs", "--csv")
    assert again.stdout.splitlines()[1] == str(len(document["runs"]))


def test_drafted_scenario_contains_the_extracted_values(hindflight: Command, drafted: Path) -> None:
    truth = json.loads((FLOW / "scenario.json").read_text())["params"]
    text = drafted.read_text()
    link = tomllib.loads(text)["links"][0]
    assert link["rate"].endswith("Mbit/s")
    assert float(link["rate"].split()[0]) * 1e6 == pytest.approx(truth["rate"], rel=0.03)
    assert "95 %" in text
    ended = hindflight("channel", "extract", CAPTURE, "-o", "trace.parquet", "--json")
    assert ended.returncode == 0, ended.stderr
    estimates = {row["name"]: row for row in json.loads(ended.stdout)["estimates"]}
    assert estimates["base_rtt_ns"]["value"] == pytest.approx(truth["rtt_ms"] * 1e6, rel=0.03)
    assert (drafted.parent / "trace.parquet").stat().st_size > 0


def test_equal_seeds_give_equal_bytes_for_any_number_of_threads(hindflight: Command, drafted: Path) -> None:
    tables = {}
    for name, threads in (("one", 1), ("two", 2), ("again", 2)):
        assert hindflight("ingest", CAPTURE, "-w", name).returncode == 0
        ended = hindflight("replay", drafted, "-w", name, "--threads", threads)
        assert ended.returncode == 0, ended.stderr
        folder = drafted.parent / name
        tables[name] = {path.name: path.read_bytes() for path in sorted(folder.glob("*.parquet"))}
    assert {name.partition("-")[0] for name in tables["one"]} >= {"runs", "segments", "instruments", "findings"}
    assert tables["one"] == tables["two"] == tables["again"]


def test_self_check_uses_the_capture_of_each_scenario(hindflight: Command, drafted: Path) -> None:
    """Flow numbers depend on the order of ingest; a scenario names its flow by input and index."""
    with demo_file(demo.CAPTURE) as other:
        assert hindflight("ingest", other, CAPTURE, "-w", "both").returncode == 0
    assert hindflight("ingest", CAPTURE, "-w", "one").returncode == 0
    said = []
    for name in ("both", "one"):
        ended = hindflight("replay", drafted, "-w", name, "--json")
        assert ended.returncode == 0, ended.stderr
        findings = json.loads(ended.stdout)["findings"]
        said.append([row for row in findings if row["section"] == "self_check"])
    assert said[0] == said[1]


def test_existing_folder_replays_the_given_capture(hindflight: Command) -> None:
    with demo_file(demo.CAPTURE) as other:
        assert hindflight("whatif", other, "-o", "out", "--seeds", "0", "--proxy", "none").returncode == 0
    ended = hindflight("whatif", CAPTURE, "-o", "out", "--seeds", "0", "--proxy", "none", "--json")
    assert ended.returncode == 0, ended.stderr
    truth = json.loads((FLOW / "scenario.json").read_text())
    (goodput,) = (
        row["value"]
        for row in json.loads(ended.stdout)["findings"]
        if (row["section"], row["subject"], row["metric"]) == ("self_check", "capture", "goodput")
    )
    assert goodput == pytest.approx(truth["flows"][0]["goodput_kbps"] * 1e3, rel=0.1)


def test_replay_without_its_capture_is_refused(hindflight: Command, drafted: Path) -> None:
    ended = hindflight("replay", drafted, "-w", "bare")
    assert ended.returncode == 0, ended.stderr
    assert "no self-check: snd.pcap.xz is not in bare" in ended.stderr
    assert "cubic" in ended.stdout


def test_python_api_gives_the_same_tables(drafted: Path) -> None:
    with hf.replay(drafted, CAPTURE) as tables:
        runs = tables.runs.collect()
        assert set(runs["purpose"].cast(str)) == {"self_check", "what_if"}
        chart = hf.charts.what_if_goodput(tables)
        assert chart.to_dict()["$schema"].startswith("https://vega.github.io/schema/vega-lite")


def _replace(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_replace("duration =", "duraton ="), "duraton: unknown key; did you mean 'duration'?"),
        (_replace("Mbit/s", "Mbits"), "links[0].rate: unit 'Mbits' is not known"),
        (_replace('rate = "', 'rate = "-'), "links[0].rate: "),
        (_replace('variants = ["cubic"]', 'variants = ["cubik"]'), "unknown variant 'cubik'; did you mean 'cubic'?"),
        (_replace("s.channel.parquet", "none.parquet"), "links[0].loss.file: no such file"),
        (_replace("path = [", "path = "), "not a TOML file"),
    ],
)
def test_invalid_scenario_gives_one_line(
    hindflight: Command, drafted: Path, change: Callable[[str], str], message: str
) -> None:
    wrong = drafted.with_name("wrong.toml")
    wrong.write_text(change(drafted.read_text()))
    ended = hindflight("replay", wrong, "-w", "ws")
    assert ended.returncode == 2
    first, *others = ended.stderr.splitlines()
    assert message in first
    assert all(line.startswith(("hindflight: ", "  hint: ")) for line in others)
    assert not (drafted.parent / "ws").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["whatif", CAPTURE, "--variants", "cubik"], "--variants: unknown variant 'cubik'; did you mean 'cubic'?"),
        (["whatif", CAPTURE, "--variants", ","], "--variants is empty"),
        (["whatif", CAPTURE, "--flow", "9"], "snd.pcap.xz has no flow 9 with data"),
        (
            ["whatif", CAPTURE, "--proxy", "moon"],
            "--proxy: 'moon' is neither a proposal nor a preset; allowed: auto, none",
        ),
        (["whatif", CAPTURE, "--proxy", "midway+pepsl"], "a proposal nor a preset; did you mean 'pepsal'?"),
        (["whatif", CAPTURE, "--proxy", "fec-tunnel"], "--proxy: 'fec-tunnel' protects a link by its loss model"),
        (["whatif", CAPTURE, "--captured-variant", "renoo"], "--captured-variant: unknown variant 'renoo'"),
        (["channel", "extract", FLOW / "scenario.json"], "is not a capture"),
        (["replay", "none.toml", "-w", "ws"], "no such scenario file"),
        (["report", ".", "-o", "r.html"], "is not a workspace"),
    ],
)
def test_invalid_arguments_give_one_line(
    hindflight: Command, tmp_path: Path, arguments: list[object], message: str
) -> None:
    ended = hindflight(*arguments)
    assert ended.returncode == 2
    assert message in error_line(ended)
    assert {entry.name for entry in tmp_path.iterdir()} == {"scratch"}


def test_whatif_of_a_capture_at_the_receiver_agrees_with_that_at_the_sender(
    hindflight: Command, tmp_path: Path
) -> None:
    found, said = {}, {}
    for name in ("snd", "rcv"):
        ended = hindflight(
            *("whatif", FLOW / f"{name}.pcap.xz", "-o", name, "--variants", "cubic", "--proxy", "none"),
            *("--seeds", "4", "--captured-variant", "linux-reno", "--json"),
        )
        assert ended.returncode == 0, ended.stderr
        rows = json.loads(ended.stdout)["findings"]
        found[name] = {(row["section"], row["subject"], row["metric"]): row["value"] for row in rows}
        said[name] = " ".join(row["text"] for row in rows if row["section"] == "summary")
        assert ("taken at the receiver" in ended.stdout) is (name == "rcv")
    assert "The flow was captured from " in said["snd"]
    assert "numbers them in snd.pcap.xz." in said["snd"]
    assert "rebuilt" not in said["snd"]
    assert "The flow lasted, as rebuilt, from " in said["rcv"]
    assert "Its round trips, as rebuilt, took " in said["rcv"]
    assert "numbers them in at-sender.pcapng." in said["rcv"]
    assert "was captured from" not in said["rcv"]
    again = hindflight("replay", "rcv/scenario.toml", "-w", "rcv/workspace", "--json")
    assert again.returncode == 0, again.stderr
    assert "Its round trips, as rebuilt, took " in again.stdout
    assert not (tmp_path / "snd" / "at-sender.pcapng").exists()
    assert (tmp_path / "rcv" / "at-sender.pcapng").exists()
    assert abs(found["rcv"]["self_check", "linux-reno", "goodput_difference"]) < 10
    mean = ("what_if", "cubic", "goodput")
    assert found["rcv"][mean] == pytest.approx(found["snd"][mean], rel=0.15)


def test_a_capture_at_the_receiver_without_timestamps_is_refused(hindflight: Command, tmp_path: Path) -> None:
    ended = hindflight("whatif", FLOW.parents[1] / "recorded" / "L4101.8-reno" / "rcv.pcap.xz", "-o", "out")
    assert ended.returncode == 2
    assert "the sender sends no timestamps" in error_line(ended)
    assert not (tmp_path / "out").exists()


def test_file_that_is_not_a_trace_is_refused(hindflight: Command, drafted: Path) -> None:
    drafted.with_name("s.channel.parquet").write_text("not parquet")
    ended = hindflight("replay", drafted, "-w", "ws")
    assert ended.returncode == 2
    assert "is not a Parquet file" in error_line(ended)


def _processor_s(pid: int) -> float:
    """Return the processor time of a process in s."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_interrupted_replay_keeps_the_previous_state(
    hindflight: Command, drafted: Path, environment: dict[str, str]
) -> None:
    long = drafted.with_name("long.toml")
    long.write_text(drafted.read_text().replace("seeds = 2", "seeds = 50000"))
    assert hindflight("ingest", CAPTURE, "-w", "ws").returncode == 0
    before = {path.name: path.read_bytes() for path in (drafted.parent / "ws").iterdir()}
    running = subprocess.Popen(
        words("replay", long, "-w", "ws"), cwd=drafted.parent, env=environment, stderr=subprocess.PIPE, text=True
    )
    # By its own clock, so that a busy machine does not have it interrupted while it still imports.
    while running.poll() is None and _processor_s(running.pid) < 4:
        time.sleep(0.1)
    assert running.poll() is None, "it ended before it could be interrupted"
    os.kill(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert (running.returncode, said.strip()) == (130, "hindflight: interrupted")
    assert {path.name: path.read_bytes() for path in (drafted.parent / "ws").iterdir()} == before


def test_whatif_of_an_interval_of_a_capture(hindflight: Command) -> None:
    whole = json.loads(hindflight("channel", "extract", CAPTURE, "--json").stdout)
    half = json.loads(hindflight("channel", "extract", CAPTURE, "--to", "30", "--json").stdout)
    assert 0 < half["counts"]["data_packets"] < whole["counts"]["data_packets"]
    ended = hindflight("ingest", CAPTURE, "-w", "ws", "--from", "10", "--to", "30")
    assert ended.returncode == 0, ended.stderr
    span = hindflight("query", "ws", "SELECT (max(t_ns) - min(t_ns)) / 1e9 AS s FROM segments", "--json")
    assert 19 < json.loads(span.stdout)["rows"][0]["s"] <= 20
    refused = hindflight("channel", "extract", "ws", "--to", "30")
    assert refused.returncode == 2
    assert "ingest --from --to" in refused.stderr
