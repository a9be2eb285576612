"""`--fix-clock`: a clock that was set, two clocks in one capture, and a sane capture, which stays as it is."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path as File

import pytest

import hindflight as hf
from fixtures.make_clocks import START_NS, Clock, Path, Stamped, capture
from hindflight.toolkit.capture import Capture, load_capture
from hindflight.toolkit.captured_flow import read_flow
from hindflight.toolkit.errors import CaptureError, HindflightError
from hindflight.toolkit.source import open_source

MS, SECOND = 1_000_000, 10**9
ONE = (Path(),)
SEVERAL = (
    Path(),
    Path(server=3, receiver_ns=300 * MS, start_ns=700 * MS),
    Path(server=2, port=40_001, receiver_ns=50 * MS, start_ns=900 * MS, timestamps=False),
)


def true(t_ns: int) -> int:
    return t_ns


def off_by(offset_ns: int, ppm: float = 0) -> Clock:
    return lambda t_ns: t_ns + offset_ns + round((t_ns - START_NS) * ppm / 1e6)


def fixed(
    folder: File, paths: tuple[Path, ...], sender: Clock, receiver: Clock, *, by_time: bool = False
) -> tuple[Capture, list[Stamped]]:
    variant, packets = capture(paths, sender, receiver, by_time=by_time)
    path = folder / "capture.pcap"
    path.write_bytes(variant.octets())
    return load_capture(path, fix_clock=True), packets


def errors_ns(found: Capture, packets: list[Stamped]) -> dict[bool, list[int]]:
    """The corrected times less the true ones, from the data sender and from the receiver."""
    errors: dict[bool, list[int]] = {True: [], False: []}
    for row in found.segments.select(["record", "t_ns"]).to_pylist():
        packet = packets[row["record"] - 1]
        errors[packet.forward].append(row["t_ns"] - packet.true_ns)
    return errors


@pytest.mark.parametrize("by_time", [False, True])
@pytest.mark.parametrize("timestamps", [False, True])
@pytest.mark.parametrize("offset_ns", [-37 * SECOND, -300 * MS, -40 * MS, 80 * MS, 37 * SECOND])
def test_two_clocks_become_one(offset_ns: int, timestamps: bool, by_time: bool, tmp_path: File) -> None:
    if not timestamps and offset_ns > 0 and (by_time or offset_ns < SECOND):
        pytest.skip("the receiver's segments ask for an answer only twice, and nothing else shows two clocks")
    paths = (replace(ONE[0], timestamps=timestamps, segments=4500 if abs(offset_ns) > SECOND else 400),)
    found, packets = fixed(tmp_path, paths, true, off_by(offset_ns), by_time=by_time)
    (sender,), (receiver,) = map(set, errors_ns(found, packets).values())
    # The clock of the first segment is kept. The offset lies in an interval as wide as the round trip, with its middle
    # as the estimate; a question of the receiver is answered by the next segment, up to 10 ms later.
    assert 0 in (sender, receiver - offset_ns)
    error = receiver - sender
    assert abs(error) <= (paths[0].sender_ns + paths[0].receiver_ns + 10 * MS) // 2
    times = found.segments["t_ns"].to_pylist()
    assert times == sorted(times)
    assert found.segments.num_rows == len(packets)
    fixes = set(found.segments["clock_fix_ns"].to_pylist())
    assert fixes == ({None, error - offset_ns} if sender == 0 else {None, offset_ns - error})
    (text,) = (row["text"] for row in found.issues.to_pylist() if row["kind"] == "clock")
    assert "corrected from here" in text
    (flow,) = found.flows.to_pylist()
    assert flow["a2b_rtt_min_ns"] == pytest.approx(paths[0].receiver_ns, abs=abs(error) + MS)
    assert flow["handshake_rtt_ns"] == pytest.approx(paths[0].sender_ns + paths[0].receiver_ns, abs=MS)


def test_the_shortest_path_of_a_host_decides(tmp_path: File) -> None:
    found, packets = fixed(tmp_path, SEVERAL, true, off_by(-2 * SECOND))
    errors = errors_ns(found, packets)
    assert set(errors[True]) == {0}
    (error,) = set(errors[False])
    assert abs(error) <= 18 * MS
    assert found.flows.num_rows == 3


def test_checksums_are_those_of_the_capture_as_it_is(tmp_path: File) -> None:
    variant, packets = capture(ONE, true, off_by(-2 * SECOND))
    damaged = {True: (50, 51, 300), False: (70, 200)}
    records = list(variant.records)
    for number in (number for numbers in damaged.values() for number in numbers):
        side = number in damaged[True]
        at = [at for at, packet in enumerate(packets) if packet.forward is side][number]
        frame = bytearray(records[at].data)
        frame[14 + 20 + 14] ^= 0x5A  # the window
        if number == 300:
            frame[14 + 8] ^= 1  # the TTL
        records[at] = replace(records[at], data=bytes(frame))
    path = tmp_path / "capture.pcap"
    path.write_bytes(replace(variant, records=tuple(records)).octets())
    found, plain = load_capture(path, fix_clock=True), load_capture(path)
    columns = ["record", "ip_checksum", "tcp_checksum"]
    as_it_is = plain.segments.select(columns).to_pylist()
    assert found.segments.select(columns).sort_by("record").to_pylist() == as_it_is
    (flow,) = found.flows.to_pylist()
    assert (flow["a2b_corrupted_segments"], flow["b2a_corrupted_segments"]) == (3, 2)


def test_drift_is_followed(tmp_path: File) -> None:
    paths = (replace(ONE[0], segments=6000),)
    found, packets = fixed(tmp_path, paths, true, off_by(-SECOND, ppm=1500))
    # 90 ms in 60 s: several intervals, each within a round trip.
    errors = errors_ns(found, packets)[False]
    assert max(map(abs, errors)) <= 36 * MS
    assert len(set(found.segments["clock_fix_ns"].to_pylist())) > 2


@pytest.mark.parametrize("step_ns", [-3600 * SECOND, 10**9 * SECOND, -5 * SECOND, 20 * SECOND])
def test_one_of_two_clocks_is_set(step_ns: int, tmp_path: File) -> None:
    at = START_NS + 2 * SECOND
    found, packets = fixed(tmp_path, ONE, true, lambda t_ns: t_ns - SECOND + (step_ns if t_ns >= at else 0))
    errors = errors_ns(found, packets)[False]
    late = [error for error in errors if abs(error) > 18 * MS]
    # A step ahead by less than a day shows with the third answer that contradicts; what was stamped before is not.
    assert len(late) <= 3
    assert set(errors_ns(found, packets)[True]) == {0}


@pytest.mark.parametrize(
    ("step_ns", "timestamps"),
    [
        (-3600 * SECOND, False),
        (-3600 * SECOND, True),
        (10**9 * SECOND, True),
        (-(10**9) * SECOND, False),
        (-(10**9) * SECOND, True),
    ],
)
def test_a_clock_that_was_set(step_ns: int, timestamps: bool, tmp_path: File) -> None:
    at = START_NS + 2 * SECOND

    def clock(t_ns: int) -> int:
        return t_ns + (step_ns if t_ns >= at else 0)

    found, packets = fixed(tmp_path, (replace(ONE[0], timestamps=timestamps),), clock, clock)
    times = found.segments["t_ns"].to_pylist()
    assert times == sorted(times)
    # Without timestamps the time across the step is lost: no more than there is between two packets.
    errors = {error for side in errors_ns(found, packets).values() for error in side}
    assert 0 in errors
    assert max(map(abs, errors)) <= (MS if timestamps else 10 * MS)
    assert len(errors) == (1 if timestamps else 2)
    records = [row["record"] for row in found.issues.to_pylist() if row["kind"] == "clock"]
    assert [packets[record - 1].true_ns >= at for record in records] == [True]
    assert packets[records[0] - 2].true_ns < at


@pytest.mark.parametrize("step_ns", [-3600 * SECOND, 10**9 * SECOND])
def test_the_first_flow_with_timestamps_shows_how_much_time_passed(step_ns: int, tmp_path: File) -> None:
    at = START_NS + 2 * SECOND

    def clock(t_ns: int) -> int:
        return t_ns + (step_ns if t_ns >= at else 0)

    # The first segment after the step is the SYN of a connection.
    paths = (Path(), Path(port=40_001, start_ns=2 * SECOND, timestamps=False))
    found, packets = fixed(tmp_path, paths, clock, clock)
    errors = {error for side in errors_ns(found, packets).values() for error in side}
    assert 0 in errors
    assert max(map(abs, errors)) <= MS
    (row,) = (row for row in found.issues.to_pylist() if row["kind"] == "clock")
    assert packets[row["record"] - 1].true_ns == at


@pytest.mark.parametrize("timestamps", [False, True])
@pytest.mark.parametrize("goes_on", [False, True])
def test_a_pause_is_kept(goes_on: bool, timestamps: bool, tmp_path: File) -> None:
    """Captures of two days: with a new connection on the second, or one that was idle."""
    pause_ns = 2 * 86_400 * SECOND
    if goes_on:
        path = Path(timestamps=timestamps, pause_ns=pause_ns)
        found, packets = fixed(tmp_path, (path,), true, true)
    else:
        paths = (Path(timestamps=timestamps), Path(port=40_001, start_ns=pause_ns, timestamps=timestamps))
        found, packets = fixed(tmp_path, paths, true, true)
    assert {error for side in errors_ns(found, packets).values() for error in side} == {0}
    plain = load_capture(tmp_path / "capture.pcap")
    for table in ("segments", "flows", "issues"):
        assert getattr(found, table).equals(getattr(plain, table)), table
    (row,) = (row for row in found.issues.to_pylist() if row["kind"] == "clock")
    assert "jumps ahead by 1727" in row["text"]


def test_a_pause_is_kept_where_there_are_two_clocks(tmp_path: File) -> None:
    paths = (Path(), Path(port=40_001, start_ns=2 * 86_400 * SECOND))
    found, packets = fixed(tmp_path, paths, true, off_by(-300 * MS))
    errors = errors_ns(found, packets)
    assert set(errors[True]) == {0}
    (error,) = set(errors[False])
    assert abs(error) <= 18 * MS
    texts = [row["text"] for row in found.issues.to_pylist() if row["kind"] == "clock"]
    assert ["jumps ahead" in text for text in texts].count(True) == 1
    assert ["two clocks" in text for text in texts].count(True) == 1


def test_a_step_that_is_not_corrected_remains_an_issue(tmp_path: File) -> None:
    """A clock that was set back, and a pause after that."""
    at, pause_ns = START_NS + 2 * SECOND, 3 * 86_400 * SECOND

    def clock(t_ns: int) -> int:
        return t_ns - (3600 * SECOND if t_ns >= at else 0)

    found, packets = fixed(tmp_path, (Path(), Path(port=40_001, start_ns=pause_ns)), clock, clock)
    assert {error for side in errors_ns(found, packets).values() for error in side} == {0}
    rows = [row for row in found.issues.to_pylist() if row["kind"] == "clock"]
    assert [("set back" in row["text"], "jumps ahead" in row["text"]) for row in rows] == [(True, False), (False, True)]
    assert packets[rows[1]["record"] - 1].true_ns == START_NS + pause_ns


def test_corrections_that_are_not_listed_are_counted(tmp_path: File) -> None:
    def clock(t_ns: int) -> int:
        return t_ns - (t_ns - START_NS) // (20 * MS) * 3 * SECOND

    found, _ = fixed(tmp_path, (replace(ONE[0], timestamps=False),), clock, clock)
    times = found.segments["t_ns"].to_pylist()
    assert times == sorted(times)
    texts = [row["text"] for row in found.issues.to_pylist() if row["kind"] == "clock"]
    assert len(texts) == 101
    assert all("set back" in text for text in texts[:100])
    steps = len(set(found.segments["clock_fix_ns"].to_pylist())) - 1
    assert texts[100] == f"{steps - 100} more corrections like those listed"


def test_steps_that_remain_and_are_not_listed_are_counted(tmp_path: File) -> None:
    def clock(t_ns: int) -> int:
        since_ns = t_ns - START_NS
        days = 2 * max(0, (since_ns - SECOND) // (20 * MS))
        return t_ns + days * 86_400 * SECOND - (5 * SECOND if since_ns >= SECOND // 2 else 0)

    found, packets = fixed(tmp_path, (replace(ONE[0], timestamps=False),), clock, clock)
    shown = [clock(packet.true_ns) for packet in packets]
    remain = sum(after - before > 86_400 * SECOND for before, after in pairwise(shown))
    texts = [row["text"] for row in found.issues.to_pylist() if row["kind"] == "clock"]
    assert ["set back" in text for text in texts] == [True] + 100 * [False]
    assert all("jumps ahead" in text for text in texts[1:100])
    assert texts[100] == f"{remain - 99} more steps of the time; kept as they are"


@pytest.mark.parametrize("timestamps", [False, True])
def test_times_that_are_wrong_for_a_while(timestamps: bool, tmp_path: File) -> None:
    def clock(t_ns: int) -> int:
        return t_ns % SECOND if 2 * SECOND <= t_ns - START_NS < 3 * SECOND else t_ns

    found, packets = fixed(tmp_path, (replace(ONE[0], timestamps=timestamps),), clock, clock)
    by_time = sorted(
        (packets[row["record"] - 1].true_ns, row["t_ns"])
        for row in found.segments.select(["record", "t_ns"]).to_pylist()
    )
    errors = [t_ns - true_ns for true_ns, t_ns in by_time]
    assert max(map(abs, errors)) <= (2 * MS if timestamps else 10 * MS)
    # Where the time leads back to that before, the clock is right again.
    assert abs(errors[-1]) <= (2 * MS if timestamps else 0)
    assert len([row for row in found.issues.to_pylist() if row["kind"] == "clock"]) == 2


@pytest.mark.parametrize("paths", [ONE, SEVERAL], ids=["one", "several"])
def test_a_sane_capture_stays_as_it_is(paths: tuple[Path, ...], tmp_path: File) -> None:
    found, _ = fixed(tmp_path, paths, true, true)
    plain = load_capture(tmp_path / "capture.pcap")
    for table in ("segments", "flows", "events", "instruments", "others", "issues"):
        assert getattr(found, table).equals(getattr(plain, table)), table
    assert found.segments["clock_fix_ns"].null_count == found.segments.num_rows


def test_a_flow_can_be_analysed_once_its_clock_is_corrected(tmp_path: File) -> None:
    at = START_NS + 2 * SECOND
    variant, _ = capture(ONE, clock := (lambda t_ns: t_ns - (3600 * SECOND if t_ns >= at else 0)), clock)
    path = tmp_path / "capture.pcap"
    path.write_bytes(variant.octets())
    with hf.open(path) as tables, pytest.raises(CaptureError, match="clock"):
        read_flow(tables.workspace, None)
    with hf.open(path, fix_clock=True) as tables:
        assert read_flow(tables.workspace, None).row["a2b_unique_bytes"] == 40_000


def test_what_cannot_be_corrected_is_refused(tmp_path: File) -> None:
    variant, _ = capture(ONE, true, off_by(SECOND))
    path = tmp_path / "capture.pcap"
    path.write_bytes(variant.octets())
    with pytest.raises(CaptureError, match="--from"):
        load_capture(path, fix_clock=True, from_ns=START_NS)
    with pytest.raises(CaptureError, match="only once"):
        load_capture("-", fix_clock=True)
    with hf.open(path) as tables, pytest.raises(HindflightError, match="when a capture is read"):
        open_source(tables.workspace.path, fix_clock=True)


def test_ingest_corrects_and_remembers_it(tmp_path: File) -> None:
    variant, _ = capture(ONE, true, off_by(-SECOND))
    path = tmp_path / "capture.pcap"
    path.write_bytes(variant.octets())

    def ingest(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hindflight", "ingest", str(path), "-w", str(tmp_path / "flight"), *options]
        return subprocess.run(command, check=False, capture_output=True, text=True)

    assert ingest("--fix-clock").returncode == 0
    assert "already here" in ingest("--fix-clock").stderr
    assert ingest().returncode == 2
    with hf.open(tmp_path / "flight") as tables:
        fixes = tables.arrow("segments")["clock_fix_ns"].to_pylist()
    assert len([fix for fix in fixes if fix]) == 402


def test_memory_does_not_depend_on_the_offset(tmp_path: File) -> None:
    """The packets of one clock are all behind those of the other: 80,000 segments would take 20 MB."""
    paths = (replace(ONE[0], segments=80_000),)
    variant, _ = capture(paths, true, off_by(-3600 * SECOND), by_time=True)
    path = tmp_path / "capture.pcap"
    path.write_bytes(b"".join(variant.parts()))
    script = (
        "import resource, sys; from hindflight.toolkit.capture import CaptureStream;"
        "stream = CaptureStream(sys.argv[1], fix_clock=len(sys.argv) > 2)\n"
        "for _ in stream.batches(4096): stream.events(), stream.instruments(), stream.others(), stream.flows()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )

    def peak_kb(*options: str) -> int:
        done = subprocess.run([sys.executable, "-c", script, str(path), *options], check=True, capture_output=True)
        return int(done.stdout)

    assert peak_kb("fix") < peak_kb() + 10_000
