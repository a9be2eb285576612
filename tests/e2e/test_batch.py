"""`hindflight batch`: every capture of a folder, whatever the others are; a rerun does only what is new."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hindflight.batches import Batch, Study, find_captures
from hindflight.cli.batch import _names
from hindflight.toolkit.errors import HindflightError, MachineError
from tests.e2e.conftest import FLOW, Command, error_line

CAPTURE = FLOW / "snd.pcap.xz"
FEW = ("--variants", "cubic", "--proxy", "none", "--seeds", "1", "--captured-variant", "linux-reno")


def summary(folder: Path) -> list[dict[str, Any]]:
    document = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    captures: list[dict[str, Any]] = document["captures"]
    return captures


def test_bad_files_do_not_stop_the_others_and_a_rerun_does_only_what_is_new(
    hindflight: Command, tmp_path: Path
) -> None:
    captures = tmp_path / "in"
    (captures / "below").mkdir(parents=True)
    (captures / "a-bad.pcap").write_bytes(b"no capture")
    (captures / "notes.txt").write_text("not a capture, and not named as one")
    (captures / "below" / "=b\x1b.xz").write_bytes(CAPTURE.read_bytes()[:8000])  # The capture is cut off, and read.
    first = hindflight("batch", captures, "-o", "out", *FEW, "--json")
    assert first.returncode == 2
    document = json.loads(first.stdout)
    assert "\x1b" not in first.stdout + first.stderr
    assert [study["state"] for study in document["captures"]] == ["failed", "done"]
    assert (document["done"], document["failed"], document["exit_code"]) == (1, 1, 2)
    assert [Path(name).name for name in document["passed_over"]] == ["notes.txt"]
    assert "passed over, not a capture: " in first.stderr
    bad, good = summary(tmp_path / "out")
    assert "is not a capture" in bad["error"]
    assert good["goodput_bps"] > 0
    report = tmp_path / good["report"]
    assert report.stat().st_size > 1e5
    written = report.stat().st_mtime_ns
    again = hindflight("batch", captures, "-o", "out", *FEW)
    assert again.returncode == 2, "a capture that is known to be bad is still bad"
    assert [study["state"] for study in summary(tmp_path / "out")] == ["failed", "unchanged"]
    assert report.stat().st_mtime_ns == written
    scenario = report.with_name("scenario.toml")
    edited = scenario.read_text(encoding="utf-8") + "# mine\n"
    scenario.write_text(edited, encoding="utf-8")
    other = hindflight("batch", captures, "-o", "out", *FEW, "--threads", "1", "--seeds", "2")
    assert other.returncode == 2
    assert scenario.read_text(encoding="utf-8") == edited
    assert [study["state"] for study in summary(tmp_path / "out")] == ["failed", "failed"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_study_too_and_leaves_nothing_half_written(number: int, code: int, tmp_path: Path) -> None:
    """The signal reaches the parent alone; 3,000 seeds take minutes."""
    started = subprocess.Popen(
        [sys.executable, "-m", "hindflight", "batch", CAPTURE, "-o", tmp_path / "out", *FEW, "--seeds", "3000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline_s = time.monotonic() + 60
        while not list(tmp_path.glob("out/*/workspace/*")):
            assert started.poll() is None
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        children = _children(started.pid)
        assert children
        sent_s = time.monotonic()
        started.send_signal(number)
        started.communicate(timeout=30)
    finally:
        started.kill()
    assert started.returncode == code
    assert time.monotonic() - sent_s < 15
    while any(Path(f"/proc/{pid}").exists() for pid in children):  # One of them waits for the parent's end.
        assert time.monotonic() - sent_s < 20
        time.sleep(0.05)
    assert [path.name for path in tmp_path.glob("out/*/*")] == ["batch.json"]


def _children(pid: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_folder_of_the_user_is_not_replaced(hindflight: Command, tmp_path: Path) -> None:
    shutil.copy(CAPTURE, tmp_path / "flight.pcap.xz")
    named = hindflight("batch", "flight.pcap.xz", "-o", "out", "--variants", "nonsense")
    assert named.returncode == 2
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "summary.json").write_text("mine")
    ended = hindflight("batch", "flight.pcap.xz", "-o", "out")
    assert ended.returncode == 2
    assert "hindflight did not write it" in error_line(ended)
    assert (tmp_path / "out" / "summary.json").read_text() == "mine"


def test_captures_are_found_by_content_and_by_name_but_not_below_the_results(tmp_path: Path) -> None:
    results = tmp_path / "out"
    for name in ("one.pcapng", "sub/two.cap.gz", "out/three.pcap", "sub/readme.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    shutil.copy(CAPTURE, tmp_path / "sub" / "flight")
    (tmp_path / "link.pcapng").symlink_to(tmp_path / "one.pcapng")
    found, others = find_captures([tmp_path, tmp_path / "one.pcapng"], results)
    assert sorted(path.resolve().name for path in found) == ["flight", "one.pcapng", "two.cap.gz"]
    assert [path.name for path in others] == ["readme.md"]
    for missing in ([tmp_path / "nothing"], [results / "empty"]):
        os.makedirs(results / "empty", exist_ok=True)
        with pytest.raises(HindflightError):
            find_captures(missing, tmp_path / "elsewhere")


def test_a_file_that_cannot_be_read_fails_and_is_not_passed_over(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "flight").symlink_to("/proc/self/mem")  # A file whose first octet cannot be read, even by root.
    ended = hindflight("batch", tmp_path / "in", "-o", "out", "--json")
    assert ended.returncode == MachineError.exit_code
    document = json.loads(ended.stdout)
    assert document["passed_over"] == []
    assert [study["state"] for study in document["captures"]] == ["failed"]
    assert document["captures"][0]["exit_code"] == MachineError.exit_code


def test_captures_of_one_name_in_different_folders_are_told_apart() -> None:
    def names(*captures: str) -> list[str]:
        return _names(Batch(tuple(Study(capture, "", "done") for capture in captures), "s"))

    assert names("in/a/snd.pcap", "in/b/snd.pcap", "in/top.pcap") == ["a/snd.pcap", "b/snd.pcap", "top.pcap"]
    assert names("in/a/snd.pcap") == ["snd.pcap"]
    assert names("/x/a.pcap", "/y/a.pcap") == ["x/a.pcap", "y/a.pcap"]


def test_exit_code_is_that_of_the_gravest_failure() -> None:
    def batch(*codes: int) -> Batch:
        return Batch(tuple(Study("c", "", "failed" if code else "done", exit_code=code) for code in codes), "s")

    assert [batch(0, 0).exit_code, batch(0, 2).exit_code, batch(2, 3).exit_code, batch(3, 1, 2).exit_code] == [
        0,
        2,
        3,
        1,
    ]
