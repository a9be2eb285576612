"""Captures of recorded runs in a folder: written apart, and all put in place under names that tell runs apart.

Knows jobs and files; the native core writes what is in them. Read docs/scenario.md, "Captures of a replay".
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hindflight.replay.experiment.engine_inputs import Job
from hindflight.replay.scenario.model import Keep
from hindflight.toolkit.errors import ScenarioError
from hindflight.toolkit.files import plain_os_errors, sync_folder


@contextmanager
def capture_folder(out: Path | None, keep: Keep) -> Iterator[Path | None]:
    """Make a folder beside where the captures go, for as long as they are written; None where none are wanted.

    ScenarioError: no run is recorded, so there is nothing to write. MachineError, HindflightError: the system refuses.
    """
    if out is None:
        yield None
        return
    if keep.series == "none":
        raise ScenarioError('keep.series = "none" records no run, so there are no captures to write', "leave one out")
    with plain_os_errors(f"writing captures to {out}"):
        out.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".captures-", dir=out))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def place_captures(folder: Path, out: Path, jobs: Mapping[int, Job]) -> tuple[Path, ...]:
    """Move the captures in `folder` to `out` as RUN-VARIANT-PROXY-NODE.pcap; `jobs` are the runs by number."""
    placed = []
    with plain_os_errors(f"writing captures to {out}"):
        for run_id, job in jobs.items():
            for written in sorted(folder.glob(f"{run_id}-*.pcap")):
                node = written.name.partition("-")[2]
                path = out / f"{run_id}-{job.variant}-{job.proxy}-{node}"
                with written.open("rb") as file:
                    os.fsync(file.fileno())
                placed.append(written.replace(path))
        sync_folder(out)
    return tuple(placed)
