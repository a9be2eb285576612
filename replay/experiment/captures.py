"""Captures of recorded runs in a folder: written to a temporary folder, then moved under names that identify the run.

Depends on jobs and files; the native core writes the contents. Read docs/scenario.md, "Captures of a replay".
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hindflight.replay.experiment.engine_inputs import Job
from hindflight.replay.scenario.model import Keep
from hindflight.toolkit.errors import ScenarioError
from hindflight.toolkit.files import check_outputs, plain_os_errors, sync_folder

_PLACED = re.compile(r"\d+-.+-.+-.+\.pcap", re.DOTALL)


@contextmanager
def capture_folder(out: Path | None, keep: Keep, *, force: bool = True) -> Iterator[Path | None]:
    """Make a temporary folder next to the captures while they are written; None where none are wanted.

    ScenarioError: no run is recorded, so there is nothing to write. HindflightError: without `force`, the
    folder holds captures of a replay already. MachineError, HindflightError: the system refuses.
    """
    if out is None:
        yield None
        return
    if keep.series == "none":
        raise ScenarioError('keep.series = "none" records no run, so there are no captures to write', "leave one out")
    check_outputs(placed_captures(out), (), force=force)
    with plain_os_errors(f"writing captures to {out}"):
        out.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".captures-", dir=out))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def placed_captures(out: Path) -> list[Path]:
    """Return the files in `out` that have names of `place_captures`: a pcap file has no place for a digest."""
    with plain_os_errors(f"writing captures to {out}"):
        return [path for path in out.iterdir() if _PLACED.fullmatch(path.name)] if out.is_dir() else []


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
