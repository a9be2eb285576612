"""Time until a report is drawn in headless Chromium, and of a zoom step.

`python -m benches report [--packets N]`, with Chromium, on an idle machine: the report of `hindflight demo`, and that
of a capture of N packets in ten flows. Both are opened from file://; a step of the zoom is a key on the chart of
round-trip times of the demo, whose charts all follow. Next to each time stands the processor time of the page's thread,
which other load on the machine does not change much: most of the work is in that thread, so on an idle machine both
are nearly the same.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benches.browser import Browser, program
from benches.captures import write_bulk

HINDFLIGHT = (sys.executable, "-m", "hindflight")
ROUNDS = 5
STEPS = 10
FLOWS = 10
CHART = "flow-1-rtt"

STEP_MS = """(async (key) => {
  const chart = document.getElementById(%s).parentElement.querySelector('.chart');
  chart.scrollIntoView({ block: 'center' });
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  await frame();
  const start = performance.now();
  chart.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  await frame();
  return performance.now() - start;
})(%s)"""
"""Milliseconds from a key on a chart to the frame after it."""


def main(words: list[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benches report", description=__doc__)
    parser.add_argument("--packets", type=int, default=10_000_000)
    options = parser.parse_args(words)
    if program() is None:
        raise SystemExit("reports are drawn by Chromium, which is not installed")
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder, "demo")
        _run("demo", "-o", demo)
        page = demo / "report.html"
        print(f"demo: {_size(page)}; {_drawn(page)} (under 2 s wanted)", flush=True)
        print(f"  a zoom step takes {_zoom_step(page)} (under 100 ms wanted)", flush=True)
        capture, workspace, large = Path(folder, "large.pcap"), Path(folder, "ws"), Path(folder, "large.html")
        packets = write_bulk(capture, options.packets, flows=FLOWS)
        _run("ingest", capture, "-w", workspace)
        start = time.perf_counter()
        _run("report", workspace, "-o", large)
        written = time.perf_counter() - start
        print(f"{packets:,} packets in {FLOWS} flows: written in {written:.1f} s, {_size(large)} (under 10 MB wanted)")
        print(f"  {_drawn(large)} (under 3 s wanted)")


def _run(*words: str | Path) -> None:
    subprocess.run([*HINDFLIGHT, *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f} MB"


def _drawn(path: Path) -> str:
    """Return how long a page takes from its request to its last chart, over some rounds."""
    took, busy = [], []
    for _ in range(ROUNDS):
        with Browser() as browser:
            before = browser.processor_s()
            start = time.perf_counter()
            browser.open(path)
            took.append(time.perf_counter() - start)
            busy.append(browser.processor_s() - before)
    return f"last chart drawn in {_range(took, 's', 2)}, processor {_range(busy, 's', 2)}"


def _zoom_step(path: Path) -> str:
    took, busy = [], []
    with Browser() as browser:
        browser.open(path)
        for step in range(2 * STEPS):
            before = browser.processor_s()
            took.append(float(browser.run(STEP_MS % (f"'{CHART}'", f"'{'+-'[step % 2]}'"))))
            busy.append(1e3 * (browser.processor_s() - before))
    return f"{_range(took, 'ms')}, processor {_range(busy, 'ms')}"


def _range(values: list[float], unit: str, digits: int = 0) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f}) {unit}"


if __name__ == "__main__":
    main(sys.argv[1:])
