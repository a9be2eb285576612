"""The memory that a process may use: the machine's, or the smallest limit of its control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hindflight.toolkit.machine import memory_bytes

INSTALLED = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(
    ("own", "files", "limit"),
    [
        ("0::/user/shell\n", {"user/memory.max": "1000000\n", "user/shell/memory.max": "max\n"}, 1_000_000),
        ("0::/user/shell\n", {"user/memory.max": "1000000\n", "user/shell/memory.max": "900000\n"}, 900_000),
        ("0::/outside/of/the/container\n", {"memory.max": "800000\n"}, 800_000),
        ("0::/\n", {"memory.max": "max\n"}, INSTALLED),
        (
            "5:cpu,cpuacct:/\n4:memory:/group\n0::/\n",
            {"memory/group/memory.limit_in_bytes": "700000\n", "memory/memory.limit_in_bytes": "9223372036854771712\n"},
            700_000,
        ),
        ("1:cpu:/\n", {"memory.max": "1\n"}, INSTALLED),
    ],
)
def test_the_smallest_limit_holds(tmp_path: Path, own: str, files: dict[str, str], limit: int) -> None:
    groups = tmp_path / "cgroup"
    for name, text in files.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(text)
    (tmp_path / "own").write_text(own)
    assert memory_bytes(groups, tmp_path / "own") == limit


def test_without_control_groups_it_is_the_machines_memory(tmp_path: Path) -> None:
    assert memory_bytes(tmp_path, tmp_path / "missing") == INSTALLED
    assert 0 < memory_bytes() <= INSTALLED
