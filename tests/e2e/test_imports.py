"""Imports on a separate thread."""

from __future__ import annotations

import subprocess
import sys


def test_a_process_that_ends_during_an_import_ends_as_it_would_without() -> None:
    for module in ("polars", "a_module_that_nobody_has"):
        begin = "import sys\nfrom hindflight.imports import import_meanwhile\n"
        program = f"{begin}import_meanwhile({module!r})\nsys.exit(3)"
        ended = subprocess.run((sys.executable, "-c", program), check=False, capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", "")
