"""Reading captures compared with the peers, in the same run: whole processes, plain pcap in the page cache, CSV to
/dev/null on both sides.

Run by hand on an idle machine: `python -m benches.bench_ingest [--packets N] [--connections N]`. The captures of known
shape (`benches/captures.py`) are written to a folder in memory if there is one. Ratios within one run can be compared;
absolute figures of different runs cannot.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from benches.captures import write_bulk, write_short, write_syns

RUNS = 3
PEER_LIMIT_S = 120.0
"""A peer that takes longer is stopped: tcptrace reads ten million packets in a few seconds, but takes very long
where many segments are sent again."""
IN_MEMORY = Path("/dev/shm")  # noqa: S108 -- the page cache without a disk behind it
HINDFLIGHT = (sys.executable, "-m", "hindflight")
TSHARK_PACKETS = 2_000_000
"""tshark takes a minute for them; with fewer, the start of Python is most of our time."""
FIELDS = ("frame.time_epoch", "tcp.stream", "tcp.seq", "tcp.ack", "tcp.len", "tcp.window_size")


class Took(NamedTuple):
    """What a process took: wall clock and processor time in seconds, peak memory in bytes; whether it was stopped."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    stopped: bool = False


def _apart(write: Callable[[], int]) -> int:
    """Call `write` in another process: Linux counts the memory of a parent among that of the programs it starts."""
    with get_context("spawn").Pool(1) as pool:
        return int(pool.apply(write))


def run(words: Sequence[str], one_core: bool = False, limit_s: float | None = None) -> Took:
    """Run a program to its end, or until `limit_s` have passed."""
    words = ["taskset", "-c", "0", *words] if one_core else list(words)
    start = time.perf_counter()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            process.kill()

        timer = threading.Timer(limit_s or threading.TIMEOUT_MAX, stop)
        timer.daemon = True
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and not stopped.is_set():
        raise RuntimeError(f"{' '.join(words)} failed")
    wall_s, cpu_s = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
    return Took(wall_s, cpu_s, usage.ru_maxrss * 1024, stopped.is_set())


def _best(words: Sequence[str], runs: int = RUNS, one_core: bool = False, limit_s: float | None = None) -> Took:
    best = run(words, one_core, limit_s)
    for _ in range(runs - 1):
        if best.stopped:
            break
        best = min(best, run(words, one_core, limit_s))
    return best


def _compare(path: Path, packets: int) -> None:
    """Print what each program takes for the same capture, and the ratios to tcptrace."""
    commands = {
        "flows --profile tcptrace": (*HINDFLIGHT, "flows", "--profile", "tcptrace", "--csv", str(path)),
        "flows": (*HINDFLIGHT, "flows", "--csv", str(path)),
    }
    words: tuple[str, ...] = ("tcptrace", "-n", "-l", "-r", "-W", str(path))
    peer = _best(words, limit_s=PEER_LIMIT_S) if shutil.which("tcptrace") else None
    if peer:
        print(f"  {'tcptrace -n -l -r -W':<26} {_shown(peer, packets)}")
    for name, words in commands.items():
        took = _best(words)
        alone = _best(words, 1, one_core=True)
        print(f"  {name:<26} {_shown(took, packets)}; on one core {alone.wall_s:.2f} s")
        if peer:
            _ratio(f"tcptrace / {name}", peer, took)
    with tempfile.TemporaryDirectory() as folder:
        words = (*HINDFLIGHT, "ingest", str(path), "-w", str(Path(folder, "workspace")))
        took = _best(words, 1)
        print(f"  {'ingest':<26} {_shown(took, packets)}")
        if peer:
            _ratio("tcptrace / ingest", peer, took)
    sys.stdout.flush()


def _shown(took: Took, packets: int) -> str:
    speed = packets / took.wall_s / 1e6
    use = f"{took.cpu_s:6.2f} s of cpu, {took.peak_bytes / 1e6:5.0f} MB"
    if took.stopped:
        return f"stopped after {took.wall_s:.0f} s, {use}"
    return f"{took.wall_s:7.2f} s, {use}, {speed:6.2f} M packets/s"


def _ratio(name: str, peer: Took, ours: Took) -> None:
    least = "at least " if peer.stopped else ""
    wall, cpu = peer.wall_s / ours.wall_s, peer.cpu_s / ours.cpu_s
    print(f"    {name} = {least}{wall:.2f} (wall clock), {least}{cpu:.2f} (cpu)")


def _compare_with_tshark(folder: Path) -> None:
    """Compare packets per second; tshark gets a smaller capture of the same shape."""
    if shutil.which("tshark") is None:
        print("tshark is not installed")
        return
    path = folder / "tshark.pcap"
    packets = _apart(partial(write_bulk, path, TSHARK_PACKETS, 10))
    fields = [word for name in FIELDS for word in ("-e", name)]
    peer = _best(("tshark", "-n", "-T", "fields", *fields, "-r", str(path)), 1)
    start = _best((*HINDFLIGHT, "--version"), 1)
    ours = _best((*HINDFLIGHT, "flows", "--profile", "tcptrace", "--csv", str(path)))
    print(f"tshark -T fields: {packets} packets")
    print(f"  tshark {_shown(peer, packets)}")
    print(f"  flows --profile tcptrace {_shown(ours, packets)}, of which {start.wall_s:.2f} s to start Python")
    _ratio("tshark / flows --profile tcptrace", peer, ours)
    path.unlink()


def main(arguments: list[str] | None = None) -> None:
    """Write the captures, time everyone on each, print times, memory and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packets", type=int, default=10_000_000)
    parser.add_argument("--connections", type=int, default=400_000)
    wanted = parser.parse_args(arguments)
    parent = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as name:
        folder = Path(name)
        path = folder / "bench.pcap"
        shapes: dict[str, Callable[[], int]] = {
            "10 bulk flows": partial(write_bulk, path, wanted.packets, 10),
            "10 bulk flows, 5 % sent again": partial(write_bulk, path, wanted.packets // 4, 10, 0.05),
            "short connections": partial(write_short, path, wanted.connections),
            "a tenth of them": partial(write_short, path, wanted.connections // 10),
        }
        for shape, write in shapes.items():
            packets = _apart(write)
            print(f"{shape}: {packets} packets, {path.stat().st_size / 1e6:.0f} MB")
            _compare(path, packets)
        packets = _apart(partial(write_syns, path, 1_000_000))
        took = _best((*HINDFLIGHT, "flows", "--profile", "tcptrace", "--csv", str(path)), 1)
        print(f"{packets} SYNs without an answer: {_shown(took, packets)}")
        path.unlink()
        _compare_with_tshark(folder)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"peak memory of any process: {peak / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
