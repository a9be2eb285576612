"""Memory of channel synthesis, which writes as it generates: the same for ten times the length.

`python -m benches channels`. Each synthesis runs in a separate process, whose maximum memory the system reports.
Depends on the command `hindflight channel synth`, not on the kernels. Read docs/channels/synth.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

TIMES = 10
MORE = 1.15
"""What ten times as much may take in memory, in parts of the lesser: allocators do not give back all."""

FADING = """
model = "arq"
[over]
model = "lms"
margin_db = 5.0
step = "10 ms"
speed = "20 m/s"
states = [{ mean_length = "50 m", direct_db = 0.0, multipath_db = -10.0 }]
"""

STREET = """
model = "street"
satellite = { azimuth = 60.0, elevation = 37.8 }
speed = "10 m/s"
length = "1 km"
"""

GILBERT = """
model = "gilbert_elliott"
p = 0.002
r = 0.2
"""


def peak_bytes(model: Path, words: list[str]) -> int:
    """Return the maximum memory of a synthesis of `model`."""
    out = model.with_suffix(".parquet")
    command = [sys.executable, "-m", "hindflight", "channel", "synth", str(model), "-o", str(out), *words]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    out.unlink()
    return usage.ru_maxrss * 1024


def main(_options: list[str]) -> None:
    """Print a line for each kind of channel; exit code 1 if memory grows with the length."""
    cases = {
        "packets of gilbert_elliott": (GILBERT, "--packets", 1_000_000, ""),
        "states of a street": (STREET, "--duration", 3600, " s"),
        "packets under ARQ over fading": (FADING, "--packets", 1_000_000, ""),
    }
    grown = False
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, option, shortest, unit) in cases.items():
            model = Path(folder) / "model.toml"
            model.write_text(text)
            less, more = (peak_bytes(model, [option, f"{times * shortest}{unit}"]) for times in (1, TIMES))
            grown |= more > MORE * less
            print(f"{name:<44} {less / 1e6:8.0f} MB, ten times as many {more / 1e6:.0f} MB; wanted the same")
    if grown:
        raise SystemExit(1)
