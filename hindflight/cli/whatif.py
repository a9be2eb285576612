"""`hindflight whatif CAPTURE`: extract, draft, self-check, replay and report in one step."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.layout import Wide
from hindflight.cli.output import AsJson, Force, command_line, progress_on_stderr, say
from hindflight.cli.replay import Threads
from hindflight.cli.scenario import CapturedVariant, Proxies, Seeds, Variants, listed
from hindflight.cli.times import From, To, capture_span

if TYPE_CHECKING:
    from hindflight.replay.experiment.experiment import ExperimentResult
    from hindflight.workflow import WhatIf


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("whatif")(whatif)


def whatif(
    inputs: Annotated[
        list[Path], typer.Argument(help="Capture at the sender, or at the receiver, kernel logs, flight logs.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for workspace, scenario and report.")] = Path(
        "whatif"
    ),
    flow: Annotated[
        int | None, typer.Option("--flow", help="Flow number [default: the flow with the most data].")
    ] = None,
    variants: Variants = "newreno,cubic",
    proxy: Proxies = "auto",
    seeds: Seeds = 40,
    captured_variant: CapturedVariant = "auto",
    from_: From = "",
    to: To = "",
    threads: Threads = None,
    force: Force = False,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Replay other variants over the channel of a captured flow. Also with a split proxy; writes a report."""
    from hindflight.replay.scenario.from_capture import Choice
    from hindflight.workflow import WhatIf

    choice = Choice(listed(variants, "--variants"), listed(proxy, "--proxy"), seeds, captured_variant)
    span_of = partial(capture_span, from_text=from_, to_text=to)
    job = WhatIf(inputs, out, flow, choice, command_line(), span_of, force=force)
    run_whatif(job, threads, as_json, wide)


def run_whatif(job: WhatIf, threads: int | None, as_json: bool, wide: bool) -> None:
    """Run the experiment and print its outcome. A folder that it created is removed if it fails."""
    from hindflight.cli.replay import show
    from hindflight.replay.scenario.from_capture import about_proxies
    from hindflight.toolkit.text import shell_line

    fresh = not job.out.exists()
    try:
        result, workspace = _run(job, threads)
    except BaseException:
        if fresh:
            shutil.rmtree(job.out, ignore_errors=True)
        raise
    show(result, as_json, wide)
    unknown = [row["text"] for row in result.tables["findings"].to_pylist() if row["section"] == "unknown"]
    for sentence in about_proxies(unknown):
        say(sentence)
    if job.at_sender.exists():
        say(f"The capture was taken at the receiver: {job.at_sender} is what its sender's would be.")
    say(f"report: {job.report}")
    words = ["hindflight", "replay", str(job.scenario), "-w", str(workspace), "--report", str(job.report)]
    say(f"To change the path or the comparison, edit {job.scenario} and run:")
    say(f"  {shell_line(words)}")


def _run(job: WhatIf, threads: int | None) -> tuple[ExperimentResult, Path]:
    """Run the study, with its progress on stderr; return the result and the workspace."""
    from hindflight.cli.replay import execution_with
    from hindflight.workflow import study_capture

    with progress_on_stderr() as report:
        return study_capture(replace(job, progress=report), execution_with(report, threads, force=job.force))
