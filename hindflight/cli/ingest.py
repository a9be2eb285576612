"""`hindflight ingest INPUT... -w WORKSPACE`: captures and logs into a workspace, recognised by content."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.output import AsJson, Outer, command_line, print_json, progress_on_stderr, say
from hindflight.cli.times import From, To, capture_span

if TYPE_CHECKING:
    from hindflight.toolkit.ingest import Ingested


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
    fix_clock: Annotated[
        bool, typer.Option("--fix-clock", help="Correct times of a clock that was set, or of two clocks in a capture.")
    ] = False,
    from_: From = "",
    to: To = "",
    as_json: AsJson = False,
) -> None:
    """Read captures, kernel logs and flight logs into a workspace. Files that it already holds are skipped."""
    from hindflight.ingesting import Request, ingest_into

    span_of = partial(capture_span, from_text=from_, to_text=to, outer=outer)
    request = Request(inputs, command_line(), span_of, flow, merge, pair, asymmetry, clock_offset, outer, fix_clock)
    with progress_on_stderr() as progress:
        outcome = ingest_into(workspace, request, progress)
    for one in outcome.inputs:
        say(_line(one))
    for line in outcome.pairs:
        say(line.text)
    if as_json:
        print_json(outcome.document())


def _line(one: Ingested) -> str:
    from hindflight.toolkit.capture import is_stream, shown
    from hindflight.toolkit.units import counted

    issues = f"; {counted(one.issues, 'issue')} (see table issues)" if one.issues else ""
    return f"{shown(one.path) if is_stream(one.path) else one.path.name}: {one.kind}, {one.note}{issues}"
