"""Invalid input: one line, the exit code of its cause, and no partial output."""

from __future__ import annotations

import lzma
import os
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import FLOW, ROOT, Command, error_line, words

CAPTURE = FLOW / "snd.pcap.xz"
FILE_HEADER_BYTES, RECORD_HEADER_BYTES = 24, 16


@pytest.fixture(scope="module")
def plain() -> bytes:
    return lzma.decompress(CAPTURE.read_bytes())


@pytest.mark.parametrize("command", [["info"], ["flows"], ["series", "--flow", "1"], ["ingest", "-w", "ws"]])
@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "empty"), (b"hello world, this is text\n" * 9, "not a capture"), (b"\0" * 4096, "not a capture")],
)
def test_file_that_is_not_a_capture_is_refused(
    hindflight: Command, tmp_path: Path, command: list[str], content: bytes, message: str
) -> None:
    file = tmp_path / "x.pcap"
    file.write_bytes(content)
    ended = hindflight(*command, file)
    assert ended.returncode == 2
    assert message in error_line(ended)
    assert "x.pcap" in error_line(ended)
    assert not (tmp_path / "ws").exists()


@pytest.mark.parametrize("command", [["info"], ["flows"], ["ingest", "-w", "ws"]])
@pytest.mark.parametrize("length", [3, 4, 23])
def test_capture_truncated_in_its_header_is_refused(
    hindflight: Command, tmp_path: Path, plain: bytes, command: list[str], length: int
) -> None:
    file = tmp_path / "x.pcap"
    file.write_bytes(plain[:length])
    ended = hindflight(*command, file)
    assert ended.returncode == 2
    assert error_line(ended)
    assert not (tmp_path / "ws").exists()


def test_capture_truncated_in_a_record_keeps_earlier_records(hindflight: Command, tmp_path: Path, plain: bytes) -> None:
    captured = struct.unpack_from("<I", plain, FILE_HEADER_BYTES + 8)[0]
    second = FILE_HEADER_BYTES + RECORD_HEADER_BYTES + captured
    file = tmp_path / "x.pcap"
    file.write_bytes(plain[: second + RECORD_HEADER_BYTES + 5])
    ended = hindflight("ingest", file, "-w", "ws")
    assert ended.returncode == 0
    assert "1 segment, 1 flow; 1 issue" in ended.stderr
    issues = hindflight("query", "ws", "SELECT record, kind FROM issues", "--csv").stdout
    assert issues.splitlines()[1].startswith("2,")


def test_truncated_archive_keeps_its_readable_part(hindflight: Command, tmp_path: Path) -> None:
    file = tmp_path / "x.pcap.xz"
    file.write_bytes(CAPTURE.read_bytes()[:20_000])
    ended = hindflight("ingest", file, "-w", "ws")
    assert ended.returncode == 0
    assert "; 1 issue" in ended.stderr


@pytest.mark.parametrize("command", [["info"], ["flows"], ["series", "--flow", "1"], ["ingest", "-w", "ws"]])
def test_missing_file_is_refused(hindflight: Command, command: list[str]) -> None:
    ended = hindflight(*command, "nix.pcap")
    assert ended.returncode == 2
    assert error_line(ended) == "nix.pcap does not exist"


def test_folder_is_not_a_capture(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for command in (["info", "folder"], ["ingest", "folder", "-w", "ws"]):
        ended = hindflight(*command)
        assert ended.returncode == 2
        assert "folder" in error_line(ended)


@pytest.mark.parametrize("command", [["query", ".", "SELECT 1"], ["score", "."], ["flows", "."]])
def test_folder_without_a_workspace_is_refused(hindflight: Command, command: list[str]) -> None:
    ended = hindflight(*command)
    assert ended.returncode == 2
    assert "is not a workspace" in error_line(ended)


def test_ingest_does_not_touch_a_folder_that_is_not_a_workspace(hindflight: Command, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("precious")
    ended = hindflight("ingest", CAPTURE, "-w", "mine")
    assert ended.returncode == 2
    assert "not empty" in error_line(ended)
    assert [entry.name for entry in mine.iterdir()] == ["thesis.txt"]


def test_one_invalid_input_stops_ingest_before_reading(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("nothing")
    ended = hindflight("ingest", CAPTURE, "bad", "-w", "ws")
    assert ended.returncode == 2
    assert "bad" in error_line(ended)
    assert not (tmp_path / "ws").exists()


def test_log_without_its_capture_is_refused(hindflight: Command, tmp_path: Path) -> None:
    ended = hindflight("ingest", FLOW / "tcpinfo.csv.xz", "-w", "ws")
    assert ended.returncode == 2
    assert "no flow here is of the log's time" in error_line(ended)
    assert "tcpinfo.csv.xz" in error_line(ended)
    assert not (tmp_path / "ws").exists()


def test_unknown_flow_is_refused(hindflight: Command) -> None:
    ended = hindflight("series", CAPTURE, "--flow", "7")
    assert ended.returncode == 2
    assert error_line(ended) == "there is no flow 7"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "yesterday"], "'yesterday' is not a time"),
        (["--from", "9", "--to", "3"], "--from 9 is after --to 3"),
        (["--from", "nan"], "'nan' is not a time"),
    ],
)
def test_invalid_times_are_refused(hindflight: Command, arguments: list[str], message: str) -> None:
    ended = hindflight("flows", CAPTURE, *arguments)
    assert ended.returncode == 2
    assert message in error_line(ended)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["qury"], "No such command 'qury'"),
        (["query"], "Missing argument"),
        (["flows", "--nix", "x"], "No such option"),
        (["series", "x", "--flow", "one"], "--flow"),
        (["series", str(CAPTURE), "--flow", "1", "--source", "nix"], "no source nix"),
    ],
)
def test_usage_errors_exit_with_2(hindflight: Command, arguments: list[str], message: str) -> None:
    ended = hindflight(*arguments)
    assert ended.returncode == 2
    assert message in error_line(ended)


def test_sql_that_writes_is_refused(hindflight: Command, tmp_path: Path) -> None:
    assert hindflight("ingest", CAPTURE, "-w", "ws").returncode == 0
    before = {entry.name: entry.read_bytes() for entry in (tmp_path / "ws").iterdir()}
    part = next(name for name in before if name.startswith("flows-"))
    for sql in (
        "DELETE FROM flows",
        "COPY flows TO 'out.csv'",
        "CREATE TABLE t AS FROM flows",
        "WITH w AS (COPY (SELECT 1) TO 'ws/PART' (USE_TMP_FILE false)) FROM w".replace("PART", part),
        "SELECT 1; DROP VIEW flows",
        "FROM 'ws/manifest.json'",
    ):
        ended = hindflight("query", "ws", sql)
        assert ended.returncode == 2, sql
        assert error_line(ended)
    assert {entry.name: entry.read_bytes() for entry in (tmp_path / "ws").iterdir()} == before
    assert not (tmp_path / "out.csv").exists()


def test_debug_shows_the_traceback(hindflight: Command) -> None:
    ended = hindflight("flows", "nix.pcap", "--debug")
    assert ended.returncode == 2
    assert ended.stderr.startswith("hindflight: nix.pcap does not exist\n")
    assert "Traceback (most recent call last)" in ended.stderr


def test_internal_error_is_reported_as_one(tmp_path: Path, environment: dict[str, str]) -> None:
    script = "import sys, hindflight.toolkit.query as q; q.query = lambda *_: 1 / 0; "
    script += "from hindflight.__main__ import main; "
    script += "from hindflight.toolkit.workspace import Workspace; Workspace.open = lambda *_: None; "
    script += "sys.argv[1:] = ['query', '.', 'x']; sys.exit(main())"
    python = words()[0]
    ended = subprocess.run(
        [python, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "this is a bug in hindflight: ZeroDivisionError" in error_line(ended)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], capture_output=True, text=True, check=False
    )
    if mount.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {mount.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def test_full_disk_is_one_line(hindflight: Command, small_disk: Path) -> None:
    demo = ROOT / "toolkit" / "demo" / "geo-burst-loss.pcap.xz"
    ended = hindflight("ingest", demo, "-w", small_disk / "ws")
    assert ended.returncode == 3
    assert error_line(ended).startswith("the disk is full while writing")
    assert not list(small_disk.iterdir()), "the workspace that could not be made is gone"


def test_full_disk_keeps_the_previous_workspace(hindflight: Command, small_disk: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.pcap.xz"
    small.write_bytes(CAPTURE.read_bytes()[:8_000])
    workspace = small_disk / "ws"
    assert hindflight("ingest", small, "-w", workspace).returncode == 0
    before = {entry.name: entry.read_bytes() for entry in workspace.iterdir()}
    ended = hindflight("ingest", ROOT / "toolkit" / "demo" / "geo-burst-loss.pcap.xz", "-w", workspace)
    assert ended.returncode == 3
    assert error_line(ended)
    assert {entry.name: entry.read_bytes() for entry in workspace.iterdir()} == before
    assert hindflight("flows", workspace, "--json").returncode == 0


def test_full_temporary_folder_is_one_line(small_disk: Path, environment: dict[str, str]) -> None:
    demo = ROOT / "toolkit" / "demo" / "geo-burst-loss.pcap.xz"
    (small_disk / "ballast").write_bytes(bytes(230_000))
    ended = subprocess.run(
        words("segments", demo),
        env=environment | {"TMPDIR": str(small_disk)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3
    assert error_line(ended).startswith("the disk is full")
    assert [entry.name for entry in small_disk.iterdir()] == ["ballast"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write anything")
def test_missing_permission_is_one_line(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    ended = hindflight("ingest", CAPTURE, "-w", "locked/ws")
    assert ended.returncode == 3
    assert "no permission" in error_line(ended)


@pytest.fixture
def long_capture(tmp_path: Path, plain: bytes) -> Path:
    """The records of the fixture, repeated to take a second to read."""
    file = tmp_path / "long.pcap"
    with file.open("wb") as out:
        out.write(plain[:FILE_HEADER_BYTES])
        for _ in range(250):
            out.write(plain[FILE_HEADER_BYTES:])
    return file


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_interrupted_command_leaves_nothing(
    hindflight: Command, tmp_path: Path, environment: dict[str, str], long_capture: Path, stop: int, code: int
) -> None:
    assert hindflight("ingest", CAPTURE, "-w", "ws").returncode == 0
    workspace = tmp_path / "ws"
    before = {entry.name: entry.read_bytes() for entry in workspace.iterdir()}
    started = subprocess.Popen(
        words("ingest", long_capture, "-w", "ws"), cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not list(workspace.glob("*.tmp")):
        assert started.poll() is None, "it ended before it could be stopped"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    started.send_signal(stop)
    _, said = started.communicate(timeout=60)
    assert started.returncode == code
    left = {entry.name: entry.read_bytes() for entry in workspace.iterdir() if not entry.name.endswith(".tmp")}
    assert left == before
    if stop == signal.SIGINT:
        assert said == "hindflight: interrupted\n"
        assert not list(workspace.glob("*.tmp"))
    listed = hindflight("flows", "ws", "--json")
    assert listed.returncode == 0
    assert listed.stdout.count('"flow_id"') == 1


def test_interrupted_in_the_first_transaction_leaves_no_folder(
    tmp_path: Path, environment: dict[str, str], long_capture: Path
) -> None:
    started = subprocess.Popen(words("ingest", long_capture, "-w", "ws"), cwd=tmp_path, env=environment)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "ws").glob("*.tmp")):
        assert started.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    started.send_signal(signal.SIGINT)
    assert started.wait(timeout=60) == 130
    assert not (tmp_path / "ws").exists()


def test_closed_output_pipe_is_not_an_error(tmp_path: Path, environment: dict[str, str], hindflight: Command) -> None:
    assert hindflight("ingest", CAPTURE, "-w", "ws").returncode == 0
    started = subprocess.Popen(
        words("query", "ws", "SELECT * FROM segments", "--csv"),
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert started.stdout is not None
    assert started.stderr is not None
    started.stdout.readline()
    started.stdout.close()
    assert started.stderr.read() == b""
    started.stderr.close()
    assert started.wait(timeout=60) == 141


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["flows", CAPTURE, "--profile", "tcptrace", "--utc"], "--profile"),
        (["flows", CAPTURE, "--profile", "tcptrace", "--port", "80"], "--profile"),
        (["info", FLOW / "tcpinfo.csv.xz", "--outer"], "--outer"),
        (["ingest", CAPTURE, "-w", "ws", "--clock-offset", "nan"], "--clock-offset"),
        (["ingest", CAPTURE, "-w", "ws", "--clock-offset", "1e300"], "--clock-offset"),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(
    hindflight: Command, command: list[str], message: str, tmp_path: Path
) -> None:
    ended = hindflight(*command)
    assert ended.returncode == 2
    assert message in error_line(ended)
    assert not (tmp_path / "ws").exists()
