"""`hindflight demo`: the whole job on the capture that ships with the package."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from hindflight.cli.layout import Wide
from hindflight.cli.output import AsJson, Force, command_line


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo")(demo)


def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for workspace, scenario and report.")] = Path(
        "hindflight-demo"
    ),
    force: Force = False,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Run whatif on the capture that ships with Hindflight. A Linux Reno flow over an emulated GEO link."""
    from hindflight.cli.whatif import run_whatif
    from hindflight.replay.scenario.from_capture import Choice
    from hindflight.toolkit.demo import CAPTURE, TCP_INFO, demo_file
    from hindflight.workflow import WhatIf

    with ExitStack() as stack:
        inputs = [stack.enter_context(demo_file(name)) for name in (CAPTURE, TCP_INFO)]
        run_whatif(WhatIf(inputs, out, None, Choice(), command_line(), force=force), None, as_json, wide)
