"""The `hindflight` command: checks that the rooms are our own, then hands over to toolkit/cli."""

from __future__ import annotations

import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

ROOMS = ("channels", "replay", "reports", "toolkit")
MARK = b"A room of hindflight."
"""Stands in the `__init__.py` of every room."""


def main() -> int:
    """Run the command line and return its exit code."""
    strangers = foreign_rooms()
    if strangers:
        print(f"hindflight: the package {strangers[0]} in this environment is another project's", file=sys.stderr)
        hint = "install hindflight by itself: pipx install hindflight, or uv tool install hindflight"
        print(f"  hint: {hint}", file=sys.stderr)
        return 2
    from toolkit.cli.app import main as run

    signal.signal(signal.SIGTERM, _terminate)
    return run(sys.argv[1:])


def _terminate(number: int, _frame: FrameType | None) -> None:
    """End as on Ctrl-C, so that what is half written is taken away."""
    sys.exit(128 + number)


def foreign_rooms() -> list[str]:
    """Return the rooms that Python finds elsewhere, or whose files another distribution has overwritten.

    Their names are common ones: Django Channels, for one, installs a `channels` as well.
    """
    root = Path(__file__).resolve().parent.parent
    return [room for room in ROOMS if not _is_ours(room, root)]


def _is_ours(room: str, root: Path) -> bool:
    spec = find_spec(room)
    if spec is None or spec.origin is None:
        return False
    file = Path(spec.origin).resolve()
    return file == root / room / "__init__.py" and MARK in file.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
