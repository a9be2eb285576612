"""Reads captures and logs into a workspace and pairs captures, as `hindflight ingest` asks for it.

toolkit/ingest.py reads, hindflight/pairing.py pairs; here are the order and the rules that concern both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.pairing import PairLine, check_places, pair_inputs
from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.ingest import Ingest, Ingested
from hindflight.toolkit.text import name_to_text
from hindflight.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from hindflight.toolkit.capture_writer import Progress
    from hindflight.toolkit.ingest import SpanOf

MAX_OFFSET_S = 9e9
"""More seconds than nanoseconds since 1970 in 64 bits can count."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to read and how; the options of the command. `command` is recorded in the manifest."""

    inputs: Sequence[Path]
    command: str
    span_of: SpanOf
    flow: int | None = None
    merge: bool = False
    pair: bool = False
    asymmetry: str = ""
    clock_offset_s: float | None = None
    outer: bool = False
    fix_clock: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of each input, and what each pair of neighbouring captures says."""

    workspace: Path
    inputs: list[Ingested]
    pairs: list[PairLine]

    def document(self) -> dict[str, Any]:
        """Return it as `hindflight ingest --json` prints it."""
        return {
            "pairs": [line.document for line in self.pairs],
            "workspace": name_to_text(self.workspace),
            "inputs": [
                {
                    "path": name_to_text(one.path),
                    "kind": one.kind,
                    "input_id": one.input_id,
                    "known": one.known,
                    "issues": one.issues,
                    "note": one.note,
                }
                for one in self.inputs
            ],
        }


def ingest_into(folder: Path, request: Request, progress: Progress) -> Outcome:
    """Read the inputs into the workspace `folder`, which is made if it does not exist, and pair them if asked to.

    HindflightError: options that contradict each other, or an invalid time; other errors as those of `Ingest` and
    `pair_inputs`.
    """
    _check(request)
    workspace = Workspace.open_or_create(folder)
    read = Ingest(
        workspace,
        request.command,
        request.flow,
        progress,
        request.span_of,
        merge=request.merge,
        clock_offset_ns=None if request.clock_offset_s is None else round(request.clock_offset_s * 1e9),
        outer=request.outer,
        fix_clock=request.fix_clock,
    )
    done = read(request.inputs)
    captures = [one for one in done if one.kind == "capture"]
    paired = pair_inputs(workspace, captures, request.asymmetry, request.command) if request.pair else []
    return Outcome(folder, done, paired)


def _check(request: Request) -> None:
    """HindflightError: options that contradict each other, or an invalid time."""
    offset_s = request.clock_offset_s
    if offset_s is not None and not abs(offset_s) < MAX_OFFSET_S:
        raise HindflightError(f"--clock-offset {offset_s} is not a time", "give seconds, as in 1.5")
    if request.pair and request.merge:
        raise HindflightError(
            "--pair and --merge contradict each other", "merge into one capture first, or leave one out"
        )
    if request.pair:
        check_places(request.inputs)
    elif request.asymmetry:
        raise HindflightError("--asymmetry without --pair does nothing", "add --pair, or leave it out")
