"""`hindflight ingest INPUT... -w WORKSPACE`: captures and logs into a workspace, told apart by content."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hindflight.cli.output import AsJson, command_line, print_json, progress_on_stderr, say
from hindflight.cli.times import From, To, capture_span


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ingest")(ingest)


def ingest(
    inputs: Annotated[list[Path], typer.Argument(help="Captures (- for standard input), kernel logs, flight logs.")],
    workspace: Annotated[Path, typer.Option("--workspace", "-w", help="Workspace; created if it does not exist.")],
    flow: Annotated[int | None, typer.Option("--flow", help="Flow that the logs belong to.")] = None,
    merge: Annotated[bool, typer.Option("--merge", help="The captures are files of one, as of a ring buffer.")] = False,
    clock_offset: Annotated[
        float | None,
        typer.Option("--clock-offset", help="Seconds to add to the times of the logs; estimated where they need it."),
    ] = None,
    from_: From = "",
    to: To = "",
    as_json: AsJson = False,
) -> None:
    """Read captures, kernel logs and flight logs into a workspace. Files that it already holds are skipped."""
    from hindflight.toolkit.capture import is_stream, shown
    from hindflight.toolkit.ingest import Ingest
    from hindflight.toolkit.text import name_to_text
    from hindflight.toolkit.units import counted
    from hindflight.toolkit.workspace import Workspace

    with progress_on_stderr() as progress:
        span_of = partial(capture_span, from_text=from_, to_text=to)
        offset_ns = None if clock_offset is None else round(clock_offset * 1e9)
        opened = Workspace.open_or_create(workspace)
        done = Ingest(opened, command_line(), flow, progress, span_of, merge, offset_ns)(inputs)
    for one in done:
        issues = f"; {counted(one.issues, 'issue')} (see table issues)" if one.issues else ""
        say(f"{shown(one.path) if is_stream(one.path) else one.path.name}: {one.kind}, {one.note}{issues}")
    if as_json:
        print_json(
            {
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
