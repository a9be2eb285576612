"""`hindflight demo`: the whole job on the capture that ships with the package."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from hindflight.cli.output import AsJson


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for workspace, scenario and report.")] = Path(
        "hindflight-demo"
    ),
    as_json: AsJson = False,
) -> None:
    """Show the main job: a real Linux TCP flow over a GEO-like link with burst loss, and what else could have been."""
    from hindflight.cli.whatif import Job, study
    from hindflight.replay.scenario.from_capture import Choice
    from hindflight.toolkit.demo import CAPTURE, TCP_INFO, demo_file
    from hindflight.toolkit.ingest import all_of_it

    with ExitStack() as stack:
        inputs = [stack.enter_context(demo_file(name)) for name in (CAPTURE, TCP_INFO)]
        study(Job(inputs, out, None, Choice(), all_of_it, None), as_json)
