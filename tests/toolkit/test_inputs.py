"""Standard input, named pipes and captures of several files: the same tables as from one file on disk."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import hindflight as hf
from fixtures.make_captures import UDP, Record, Variant, ethernet, ipv4, tcp4
from hindflight.toolkit.capture import CaptureStream, load_capture
from hindflight.toolkit.errors import CaptureError, WorkspaceError
from hindflight.toolkit.ingest import Ingest
from hindflight.toolkit.workspace import Workspace

DEMO = Path(__file__).parents[2] / "toolkit/demo/geo-burst-loss.pcap.xz"
HINDFLIGHT = [sys.executable, "-m", "hindflight"]


def run(*arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*HINDFLIGHT, *arguments], input=stdin, capture_output=True, check=False, timeout=60)


def pieces(octets: bytes, folder: Path) -> list[Path]:
    """Split a pcap file into two that take turns for the first half, and two blocks of the rest.

    Records of the same time, or out of order, stay together: no tool can restore their order.
    """
    groups: list[bytes] = []
    at, latest = 24, (0, 0)
    while at < len(octets):
        second, fraction, captured = struct.unpack_from("<III", octets, at)
        record = octets[at : at + 16 + captured]
        if (second, fraction) > latest:
            groups.append(record)
            latest = (second, fraction)
        else:
            groups[-1] += record
        at += len(record)
    half = len(groups) // 2
    middle = half + half // 3
    paths = []
    for number, part in enumerate([groups[:half:2], groups[1:half:2], groups[half:middle], groups[middle:]]):
        paths.append(folder / f"flight.pcap{number}")
        paths[-1].write_bytes(octets[:24] + b"".join(part))
    return paths


@pytest.fixture(scope="module")
def plain() -> bytes:
    return lzma.decompress(DEMO.read_bytes())


def test_files_merged_in_any_order_give_the_tables_of_the_whole(tmp_path: Path, plain: bytes) -> None:
    whole_path = tmp_path / "whole.pcap"
    whole_path.write_bytes(plain)
    whole = load_capture(whole_path)
    paths = pieces(plain, tmp_path)
    assert len(paths) == 4
    for order in (paths, paths[::-1]):
        merged = load_capture(order, input_id=[1, 1, 1, 1])
        for name in ("segments", "events", "instruments", "others"):
            ours = getattr(merged, name)
            theirs = getattr(whole, name)
            drop = ["input_id"] if "input_id" in ours.column_names else []
            assert ours.drop(drop).equals(theirs.drop(drop)), name
        assert merged.summary.packets == whole.summary.packets
        assert merged.summary.bytes_read >= whole.summary.bytes_read


@pytest.mark.parametrize("table", ["flows", "segments", "events"])
def test_commands_that_read_merge_several_files(table: str, tmp_path: Path, plain: bytes) -> None:
    whole = tmp_path / "whole.pcap"
    whole.write_bytes(plain)
    paths = pieces(plain, tmp_path)[::-1]
    read = getattr(hf, table)
    expected, ours = read(whole), read(paths)
    drop = ["input_id"] if "input_id" in ours.columns else []
    assert ours.height > 0
    assert ours.drop(drop).equals(expected.drop(drop))
    printed = run(table, *map(str, paths), "--json")
    assert printed.returncode == 0, printed.stderr
    assert len(json.loads(printed.stdout)[table]) == ours.height
    assert read(paths, from_time="2", to_time="3").drop(drop).equals(read(whole, from_time="2", to_time="3").drop(drop))


@pytest.mark.parametrize("command", ["flows", "segments", "events", "info"])
def test_files_that_cannot_be_merged_are_one_line(command: str, tmp_path: Path, plain: bytes) -> None:
    paths = [str(path) for path in pieces(plain, tmp_path)]
    copy = tmp_path / "copy"
    copy.write_bytes(Path(paths[0]).read_bytes())
    for wrong, reason in (
        ((paths[0], str(copy)), b"have the same content"),
        ((paths[0], "-"), b"cannot be merged"),
        ((paths[0], str(tmp_path)), b"is a folder"),
        ((paths[0], str(tmp_path / "missing")), b"missing"),
    ):
        refused = run(command, *wrong, stdin=plain)
        assert (refused.returncode, reason in refused.stderr) == (2, True), refused.stderr
        assert len(refused.stderr.splitlines()) <= 2


@pytest.mark.parametrize(("table", "profile"), [("flows", "tcptrace"), ("segments", "wireshark")])
def test_a_profile_counts_files_merged_in_time_as_the_whole(
    table: str, profile: str, tmp_path: Path, plain: bytes
) -> None:
    whole = tmp_path / "whole.pcap"
    whole.write_bytes(plain)
    paths = pieces(plain, tmp_path)[::-1]
    read = getattr(hf, table)
    expected = read(whole, profile=profile)
    assert expected.height > 0
    assert read(paths, profile=profile).equals(expected)
    one, several = (run(table, *map(str, given), "--profile", profile, "--csv") for given in ([whole], paths))
    assert (several.returncode, several.stdout) == (0, one.stdout)
    with pytest.raises(CaptureError, match="no file"):
        read([], profile=profile)
    refused = run(table, str(whole), "-", "--profile", profile, stdin=plain)
    assert (refused.returncode, b"cannot be merged" in refused.stderr) == (2, True)


def test_the_issue_of_a_profile_names_its_file(tmp_path: Path, plain: bytes) -> None:
    whole, cut = tmp_path / "whole.pcap", tmp_path / "cut.pcap"
    whole.write_bytes(plain)
    cut.write_bytes(plain[:60])
    found = run("flows", str(whole), str(cut), "--profile", "tcptrace", "--csv")
    assert f"{cut}: " in found.stderr.decode()


@pytest.mark.parametrize("command", ["flows", "segments", "events", "series", "query"])
def test_csv_and_json_together_are_refused(command: str, tmp_path: Path, plain: bytes) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(plain)
    words = {"series": ["cwnd"], "query": ["select 1"]}.get(command, [])
    for both in (["--csv", "--json"], ["--json", "--csv"]):
        refused = run(command, str(path), *words, *both)
        assert (refused.returncode, refused.stdout) == (2, b"")
        assert b"--csv and --json contradict each other" in refused.stderr
        assert len(refused.stderr.splitlines()) <= 2


@pytest.mark.parametrize("words", [["info", "-"], ["flows", "-"], ["segments", "-"], ["ingest", "-", "-w", "out"]])
def test_a_log_on_standard_input_is_refused_with_what_to_do(words: list[str], tmp_path: Path) -> None:
    log = (Path(__file__).parents[2] / "fixtures/logs/ss-oneline.txt").read_bytes()
    words = [str(tmp_path / word) if word == "out" else word for word in words]
    refused = run(*words, stdin=log)
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert b"standard input is not a capture" in refused.stderr
    assert b"only captures are read from a pipe; save a log to a file" in refused.stderr
    assert len(refused.stderr.splitlines()) <= 2


@pytest.mark.peer
def test_a_merged_file_without_a_whole_record_is_an_issue_of_that_file(tmp_path: Path, plain: bytes) -> None:
    whole, cut = tmp_path / "whole.pcap", tmp_path / "cut.pcap"
    whole.write_bytes(plain)
    cut.write_bytes(plain[:60])
    alone = load_capture(cut, input_id=2).issues
    assert alone.num_rows == 1
    merged = load_capture([whole, cut], input_id=[1, 2])
    assert merged.issues.to_pylist() == alone.to_pylist()
    assert merged.segments.num_rows == load_capture(whole).segments.num_rows


def test_records_are_those_of_mergecap(tmp_path: Path, plain: bytes) -> None:
    if shutil.which("mergecap") is None:
        pytest.skip("mergecap is not installed")
    paths = pieces(plain, tmp_path)
    merged = tmp_path / "merged.pcapng"
    subprocess.run(["mergecap", "-w", str(merged), *map(str, paths)], check=True)
    columns = ["record", "t_ns", "seq_raw", "ack_raw", "payload_bytes"]
    ours = load_capture(paths, input_id=[1] * len(paths)).segments.select(columns)
    assert ours.equals(load_capture(merged).segments.select(columns))


def test_an_issue_names_the_file_and_the_record_in_it(tmp_path: Path) -> None:
    paths = []
    for number in range(3):
        damaged = ethernet(0x0800, b"\x4f" + ipv4(6, b"")[1:])
        records = (
            Record(tcp4(), second=100 * number),
            Record(damaged if number == 1 else tcp4(), second=100 * number + 1),
        )
        paths.append(tmp_path / f"{number}.pcap")
        paths[-1].write_bytes(Variant("part", records, 2).octets())
    found = load_capture(paths[::-1], input_id=[7, 8, 9])
    assert [(row["input_id"], row["record"], row["kind"]) for row in found.issues.to_pylist()] == [(8, 2, "ip_header")]
    assert found.segments["record"].to_pylist() == [1, 2, 3, 5, 6]


def test_files_without_records_and_one_that_is_missing(tmp_path: Path) -> None:
    empty, full = tmp_path / "empty.pcap", tmp_path / "full.pcap"
    empty.write_bytes(Variant("empty", (), 0).octets())
    full.write_bytes(Variant("full", (Record(tcp4()),), 1).octets())
    assert load_capture([empty, full], input_id=[1, 2]).segments.num_rows == 1
    with pytest.raises(CaptureError, match=r"gone\.pcap does not exist"):
        CaptureStream([full, tmp_path / "gone.pcap"], input_id=[1, 2])
    text = tmp_path / "text.pcap"
    text.write_text("not a capture at all")
    with pytest.raises(CaptureError, match=r"text\.pcap is not a capture"):
        CaptureStream([full, text], input_id=[1, 2])


def test_hundreds_of_files_need_no_memory_each(tmp_path: Path) -> None:
    paths = []
    for number in range(400):
        paths.append(tmp_path / f"{number:03}.pcap")
        records = tuple(Record(tcp4(), second=10 * number + n) for n in range(3))
        paths[-1].write_bytes(Variant("part", records, 3).octets())
    code = (
        "import re, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64));"
        "from hindflight.toolkit.capture import CaptureStream;"
        "s = CaptureStream(sys.argv[1:], input_id=[1] * len(sys.argv[1:]));"
        "print(sum(b.num_rows for b in s.batches()));"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )
    out = subprocess.run([sys.executable, "-c", code, *map(str, paths)], capture_output=True, check=True, text=True)
    rows, kilobytes = map(int, out.stdout.split())
    assert rows == 1200
    # The 400 buffers alone would take 200 MB; what pyarrow needs is far below that.
    assert kilobytes < 200_000


def test_merged_inputs_are_all_in_the_manifest(tmp_path: Path, plain: bytes) -> None:
    workspace = Workspace.open_or_create(tmp_path / "workspace")
    paths = pieces(plain, tmp_path)
    done = Ingest(workspace, "test", merge=True)(paths)
    assert [one.input_id for one in done] == [1, 2, 3, 4]
    entries = Workspace.open(tmp_path / "workspace").inputs
    assert [entry.name for entry in entries] == [path.name for path in paths]
    assert all(len(entry.sha256) == 64 for entry in entries)
    assert workspace.rows("flows") == 1
    assert all(one.known for one in Ingest(workspace, "test", merge=True)(paths))
    with pytest.raises(CaptureError, match="would count twice"):
        Ingest(workspace, "test", merge=True)([paths[0], DEMO])


def test_standard_input_and_a_named_pipe_give_the_tables_of_the_file(tmp_path: Path, plain: bytes) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(plain)
    expected = load_capture(path).flows.drop(["input_id"])
    read = json.loads(run("flows", "-", "--json", stdin=DEMO.read_bytes()).stdout)["flows"]
    assert [{**row, "input_id": 0} for row in read] == [{**row, "input_id": 0} for row in json_rows(expected)]

    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(plain))
    writer.start()
    workspace = tmp_path / "workspace"
    assert run("ingest", str(fifo), "-w", str(workspace)).returncode == 0
    writer.join()
    assert Workspace.open(workspace).table("flows").drop(["input_id"]).equals(expected)

    # The same octets again, from elsewhere: recognised, and nothing is added.
    again = run("ingest", "-", "-w", str(workspace), "--json", stdin=plain)
    assert json.loads(again.stdout)["inputs"][0]["known"] is True
    (entry,) = Workspace.open(workspace).inputs
    assert entry.size_bytes == len(plain)


def json_rows(table: pa.Table) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(json.dumps(table.to_pylist()))
    return rows


def test_seconds_in_a_pipe_and_a_merged_pipe_are_refused(tmp_path: Path, plain: bytes) -> None:
    workspace = str(tmp_path / "workspace")
    refused = run("ingest", "-", "-w", workspace, "--from", "1", stdin=plain)
    assert (refused.returncode, b"in UTC" in refused.stderr) == (2, True)
    refused = run("ingest", "-", str(DEMO), "-w", workspace, "--merge", stdin=plain)
    assert (refused.returncode, b"cannot be merged" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("number", "code", "record"),
    [
        (signal.SIGINT, 130, None),
        (signal.SIGTERM, 143, tcp4()),
        (signal.SIGTERM, 143, ethernet(0x0800, ipv4(UDP, bytes(8)))),
    ],
    ids=["opened", "silent after a segment", "without TCP"],
)
def test_a_pipe_that_never_ends_can_be_interrupted(
    number: signal.Signals, code: int, record: bytes | None, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    started = subprocess.Popen(
        [*HINDFLIGHT, "ingest", "-", "-w", str(workspace)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert started.stdin is not None
    deadline_s = time.monotonic() + 60
    while not workspace.exists():  # It opens the pipe next.
        assert started.poll() is None
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    time.sleep(0.1)
    if record is not None:
        # A header and then silence, or packets without TCP for as long as they are read.
        silent = record == tcp4()
        variant = Variant("pipe", (Record(record),), 1).octets()
        started.stdin.write(variant)
        started.stdin.flush()
        stop = threading.Event()
        if not silent:
            threading.Thread(target=feed, args=(started.stdin, variant[24:] * 1000, stop), daemon=True).start()
        time.sleep(0.5)
    sent = time.monotonic()
    started.send_signal(number)
    assert started.wait(timeout=20) == code
    assert time.monotonic() - sent < 1.5
    assert not workspace.exists()
    with suppress(BrokenPipeError):
        started.stdin.close()


def feed(pipe: object, octets: bytes, stop: threading.Event) -> None:
    try:
        while not stop.is_set():
            pipe.write(octets)  # type: ignore[attr-defined]
    except OSError:
        pass


def test_files_with_the_same_content_are_not_merged(tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcap.xz"
    copy.write_bytes(DEMO.read_bytes())
    for paths in ([DEMO, copy], [DEMO, DEMO]):
        with pytest.raises(CaptureError, match="same content"):
            Ingest(Workspace.create(tmp_path / "ws"), "test", merge=True)(paths)
        assert not (tmp_path / "ws").exists()


def test_an_input_read_with_other_options_is_not_dropped_silently(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "ws")
    Ingest(workspace, "test")([DEMO])
    assert Ingest(workspace, "test")([DEMO])[0].known
    with pytest.raises(WorkspaceError, match=r"read with other options.*--outer"):
        Ingest(workspace, "test", outer=True)([DEMO])
    first_ns = load_capture(DEMO).flows["start_ns"][0].as_py()

    def later(_paths: Sequence[Path]) -> tuple[int, None]:
        return first_ns, None

    with pytest.raises(WorkspaceError, match=f"--from {first_ns}"):
        Ingest(workspace, "test", span_of=later)([DEMO])
    logs = Path(__file__).parents[2] / "fixtures" / "logs"
    joined = Workspace.create(tmp_path / "joined")
    Ingest(joined, "test", clock_offset_ns=0)([logs / "transfer.pcap.xz", logs / "ss-oneline.txt"])
    assert Ingest(joined, "test", clock_offset_ns=0)([logs / "ss-oneline.txt"])[0].known
    with pytest.raises(WorkspaceError, match=r"--clock-offset 0; now --flow 1 --clock-offset 0\.5"):
        Ingest(joined, "test", flow_id=1, clock_offset_ns=500_000_000)([logs / "ss-oneline.txt"])


def test_the_end_of_a_span_is_not_included() -> None:
    start_ns = load_capture(DEMO).segments["t_ns"][0].as_py()
    second = next(t for t in load_capture(DEMO).segments["t_ns"].to_pylist() if t > start_ns)
    seconds = f"{(second - start_ns) / 1e9:.9f}"
    chosen = hf.segments(DEMO, to_time=seconds)
    assert set(chosen["t_ns"]) == {start_ns}
    assert set(load_capture(DEMO, to_ns=second).segments["t_ns"].to_pylist()) == {start_ns}
    assert hf.segments(DEMO, from_time=seconds)["t_ns"][0] == second
