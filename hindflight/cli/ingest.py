"""`hindflight ingest INPUT... -w WORKSPACE`: captures and logs into a workspace, recognised by content."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hindflight.cli.output import AsJson, Outer, command_line, print_json, progress_on_stderr, say
from hindflight.cli.times import From, To, capture_span
from hindflight.toolkit.errors import HindflightError

MAX_OFFSET_S = 9e9
"""More seconds than nanoseconds since 1970 in 64 bits can count."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ingest")(ingest)


def ingest(
    inputs: Annotated[list[Path], typer.Argument(help="Captures (- for standard input), kernel logs, flight logs.")],
    workspace: Annotated[Path, typer.Option("--workspace", "-w", help="Workspace; created if it does not exist.")],
    flow: Annotated[int | None, typer.Option("--flow", help="Flow that the logs belong to.")] = None,
    merge: Annotated[bool, typer.Option("--merge", help="The captures are files of one, as of a ring buffer.")] = False,
    pair: Annotated[
        bool, typer.Option("--pair", help="The captures are of the same connections, in order from the data sender.")
    ] = False,
    asymmetry: Annotated[
        str,
        typer.Option("--asymmetry", metavar="TIME", help="With --pair: minimum delay there less back (0 ms: equal)."),
    ] = "",
    clock_offset: Annotated[
        float | None,
        typer.Option("--clock-offset", help="Seconds to add to the times of the logs; estimated where they need it."),
    ] = None,
    outer: Outer = False,
    from_: From = "",
    to: To = "",
    as_json: AsJson = False,
) -> None:
    """Read captures, kernel logs and flight logs into a workspace. Files that it already holds are skipped."""
    from hindflight.pairing import pair_inputs
    from hindflight.toolkit.capture import is_stream, shown
    from hindflight.toolkit.ingest import Ingest
    from hindflight.toolkit.text import name_to_text
    from hindflight.toolkit.units import counted
    from hindflight.toolkit.workspace import Workspace

    _check(inputs, pair, merge, asymmetry, clock_offset)
    opened = Workspace.open_or_create(workspace)
    with progress_on_stderr() as progress:
        span_of = partial(capture_span, from_text=from_, to_text=to)
        offset_ns = None if clock_offset is None else round(clock_offset * 1e9)
        ingest_all = Ingest(
            opened, command_line(), flow, progress, span_of, merge=merge, clock_offset_ns=offset_ns, outer=outer
        )
        done = ingest_all(inputs)
    for one in done:
        issues = f"; {counted(one.issues, 'issue')} (see table issues)" if one.issues else ""
        say(f"{shown(one.path) if is_stream(one.path) else one.path.name}: {one.kind}, {one.note}{issues}")
    paired = (
        pair_inputs(opened, [one for one in done if one.kind == "capture"], asymmetry, command_line()) if pair else []
    )
    for line in paired:
        say(line.text)
    if as_json:
        print_json(
            {
                "pairs": [line.document for line in paired],
                "workspace": name_to_text(workspace),
                "inputs": [
                    {
                        "path": name_to_text(one.path),
                        "kind": one.kind,
                        "input_id": one.input_id,
                        "known": one.known,
                        "issues": one.issues,
                        "note": one.note,
                    }
                    for one in done
                ],
            }
        )


def _check(inputs: list[Path], pair: bool, merge: bool, asymmetry: str, clock_offset: float | None) -> None:
    """HindflightError: options that contradict each other, or a time that is none."""
    if clock_offset is not None and not abs(clock_offset) < MAX_OFFSET_S:
        raise HindflightError(f"--clock-offset {clock_offset} is not a time", "give seconds, as in 1.5")
    if pair and merge:
        raise HindflightError(
            "--pair and --merge contradict each other", "merge into one capture first, or leave one out"
        )
    if pair and len(inputs) < 2:
        raise HindflightError("--pair needs the captures of two places", "as in ingest SENDER RECEIVER --pair")
    if asymmetry and not pair:
        raise HindflightError("--asymmetry without --pair does nothing", "add --pair, or leave it out")
