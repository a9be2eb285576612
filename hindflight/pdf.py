"""A report's page as PDF, printed by headless Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hindflight.toolkit.errors import MachineError

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SECONDS = 180
_LONGEST_FOLDER = 40
"""Characters of the folder for temporary files up to which Chromium's socket in it has a name that the system accepts
(sun_path in unix(7): 108 octets)."""


def check_printer() -> str:
    """Return the path of Chromium. MachineError where there is none."""
    found = next((path for name in _PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        raise MachineError(
            "a PDF needs Chromium, which is not installed here", "install chromium, or write HTML and print it"
        )
    return found


PAGE_WIDTH_PX = 900
"""Width at which the charts of a page are drawn before it is printed: the narrowest with two panels side by side."""


def print_page(page: bytes) -> bytes:
    """Return the PDF of an HTML page. MachineError where Chromium is missing or fails."""
    program = check_printer()
    usual = tempfile.gettempdir()
    where = usual if len(os.fsencode(usual)) <= _LONGEST_FOLDER else "/tmp"  # noqa: S108  (mkdtemp makes it safe)
    with tempfile.TemporaryDirectory(prefix="hindflight-pdf-", dir=where, ignore_cleanup_errors=True) as folder:
        source, target = Path(folder) / "report.html", Path(folder) / "report.pdf"
        source.write_bytes(page)
        command = [
            program, "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder}/profile", "--no-pdf-header-footer",
            "--virtual-time-budget=60000", f"--print-to-pdf={target}",
            f"--window-size={PAGE_WIDTH_PX},1400",
            *(["--no-sandbox"] if os.geteuid() == 0 else []), source.as_uri(),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=_SECONDS, check=False, env=os.environ | {"TMPDIR": folder}
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MachineError(f"Chromium printed no PDF: {error}", "write HTML and print it") from error
        if not target.is_file():
            raise MachineError(
                f"Chromium printed no PDF: it ended with code {done.returncode}", "write HTML and print it"
            )
        return target.read_bytes()
