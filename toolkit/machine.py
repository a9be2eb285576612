"""How much memory this process may use: the machine's, or less where a control group limits it.

Linux only, like the rest of Hindflight. Does not depend on tables or files of ours.
"""

from __future__ import annotations

import os
from pathlib import Path

QUERY_SHARE = 0.5
"""Share of the available memory that a query may use."""

_CGROUPS = Path("/sys/fs/cgroup")


def memory_bytes(cgroups: Path = _CGROUPS, own: Path = Path("/proc/self/cgroup")) -> int:
    """Return the memory of the machine, or the smallest limit of the control groups (v1 and v2) of this process."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([installed, *_limits(cgroups, own)])


def _limits(cgroups: Path, own: Path) -> list[int]:
    """The limits of every group from the root of the hierarchy down to the group of this process."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    files: list[Path] = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":  # cgroups(7): version 2 has one hierarchy without a name.
            root, name = cgroups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = cgroups / "memory", "memory.limit_in_bytes"
        else:
            continue
        path = Path(group.lstrip("/"))
        # In a container the path may be that of the host, and the container's own group be the root.
        files += [root / part / name for part in (path, *path.parents)]
    return [limit for limit in map(_limit, files) if limit is not None]


def _limit(file: Path) -> int | None:
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None  # "max": no limit.
