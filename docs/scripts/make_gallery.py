"""Makes the reports that the gallery of the site links to: `python -m docs.scripts.make_gallery FOLDER`.

`make docs` runs it before Sphinx.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

GEO_LINK = """\
name = "GEO link with burst losses"
duration = "120 s"
path = ["aircraft", "ground"]

[[links]]
name = "satellite"
rate = "4 Mbit/s"
delay = "260 ms"
queue = "200 pkts"
loss = { model = "gilbert_elliott", mean_loss = 0.005, mean_burst = 8.0 }

[flow]
profile = "linux"

[compare]
variants = ["linux-reno", "cubic", "hybla", "bbr"]
seeds = 20
"""


def make(folder: Path) -> None:
    """Write the reports into `folder`/reports."""
    reports = folder / "reports"
    reports.mkdir(parents=True, exist_ok=True)
    command = Path(sys.executable).with_name("hindflight")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "geo-link.toml").write_text(GEO_LINK)
        for arguments in (
            ["demo", "-o", "demo"],
            ["replay", "geo-link.toml", "-w", "ws", "--report", "geo-link.html"],
        ):
            subprocess.run([command, *arguments], cwd=work, check=True, stdout=subprocess.DEVNULL)
        shutil.copy(work / "demo" / "report.html", reports / "demo.html")
        shutil.copy(work / "geo-link.html", reports / "geo-link.html")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
