"""Draws the picture of README, two parts of the demo's report: `python -m docs.scripts.make_report_picture`.

Needs Chromium.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from hindflight.pdf import check_printer

TARGET = Path(__file__).resolve().parents[1] / "images" / "report.png"
PARTS = ("findings", "flow-1")
"""Where each part begins, by its identifier in the page."""

WIDTH_PX, HEIGHT_PX = 750, 1100


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory(prefix="picture-", ignore_cleanup_errors=True) as folder:
        demo = [sys.executable, "-m", "hindflight", "demo", "-o", f"{folder}/out"]
        subprocess.run(demo, check=True, capture_output=True)
        frames = "".join(
            f'<iframe src="out/report.html#{part}" width="{WIDTH_PX}" height="{HEIGHT_PX}"></iframe>' for part in PARTS
        )
        page = Path(folder) / "page.html"
        page.write_text(
            f"<style>body {{ margin: 0; display: flex }} iframe {{ border: 0 }}</style>{frames}", encoding="utf-8"
        )
        picture = [
            check_printer(), "--headless", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=20000",
            f"--user-data-dir={folder}/profile", f"--window-size={len(PARTS) * WIDTH_PX},{HEIGHT_PX}",
            f"--screenshot={TARGET}", *(["--no-sandbox"] if os.geteuid() == 0 else []), page.as_uri(),
        ]  # fmt: skip
        subprocess.run(picture, check=True, capture_output=True, env=os.environ | {"TMPDIR": folder})


if __name__ == "__main__":
    main()
