"""Time and memory of `hindflight whatif` as users run it, for one long capture.

`python -m benches whatif [--packets N] [OPTIONS OF WHATIF]`. The capture is a replay of linux-reno, with the engine's
own capture writer.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from hindflight.replay.catalogue import engine_variant_names
from hindflight.replay.experiment.engine_inputs import Job
from hindflight.replay.experiment.run import Recording, run_jobs
from hindflight.replay.scenario.model import Scenario, parse_scenario

MSS = 1448
RATE_BPS = 100e6


def _scenario(packets: int) -> Scenario:
    """A flow of `packets` data segments over 100 Mbit/s that loses one in ten thousand."""
    link = {
        "name": "sky",
        "rate": f"{RATE_BPS:.0f} bit/s",
        "delay": "10 ms",
        "queue": "400 pkts",
        "loss": {"model": "bernoulli", "per": 1e-4},
    }
    data = {
        "name": "bench",
        "duration": f"{20 * packets * MSS * 8 / RATE_BPS:.0f} s",
        "path": ["sender", "receiver"],
        "links": [link],
        "flow": {"profile": "linux", "size": f"{packets * MSS} B"},
        "compare": {"variants": ["linux-reno"], "seeds": 1},
    }
    return parse_scenario(data, "bench", engine_variant_names())


def write_capture(folder: Path, packets: int) -> Path:
    """Write the capture at the sender of one flow of `packets` data segments; return its path."""
    recording = Recording(segments=False, samples=2, captures=folder)
    run_jobs(_scenario(packets), {1: Job("linux-reno", "none", "what_if", "model", 1, True)}, {}, recording=recording)
    return folder / "1-sender.pcap"


def measure_whatif(capture: Path, out: Path, options: Sequence[str] = ()) -> tuple[float, float]:
    """Return the seconds and the maximum resident memory in bytes of one `hindflight whatif`."""
    words = [sys.executable, "-m", "hindflight", "whatif", str(capture), "-o", str(out), *options]
    with tempfile.TemporaryFile("w+") as messages:
        begin = time.perf_counter()
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=messages)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            messages.seek(0)
            raise SystemExit(f"{messages.read().rstrip()}\n{' '.join(words)} ended with {process.returncode}")
    return seconds, usage.ru_maxrss * 1024.0


def main(arguments: list[str] | None = None) -> None:
    """Write the capture, run `whatif` on it and print seconds and memory."""
    parser = argparse.ArgumentParser(prog="python -m benches whatif", description=__doc__)
    parser.add_argument("--packets", type=int, default=1_000_000, help="data segments of the flow, without repetitions")
    chosen, options = parser.parse_known_args(arguments)
    packets = chosen.packets
    with tempfile.TemporaryDirectory() as name:
        capture = write_capture(Path(name), packets)
        size_mb = capture.stat().st_size / 1e6
        seconds, memory = measure_whatif(capture, Path(name, "out"), options)
    print(f"whatif of a capture of {packets} data segments ({size_mb:.0f} MB): {seconds:.1f} s, {memory / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
