"""`hindflight whatif CAPTURE`: extract, draft, self-check, replay and report in one step."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.output import AsJson, command_line, progress_on_stderr, say
from hindflight.cli.replay import Threads
from hindflight.cli.scenario import CapturedVariant, Proxies, Seeds, Variants, listed
from hindflight.cli.times import From, To, capture_span

if TYPE_CHECKING:
    from hindflight.replay.scenario.from_capture import Choice
    from hindflight.toolkit.ingest import SpanOf


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("whatif")(whatif)


def whatif(
    inputs: Annotated[list[Path], typer.Argument(help="Capture at the sender, and kernel logs of it if there are.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for workspace, scenario and report.")] = Path(
        "whatif"
    ),
    flow: Annotated[int | None, typer.Option("--flow", help="Flow; without it the one with most data.")] = None,
    variants: Variants = "newreno,cubic",
    proxy: Proxies = "none,relay",
    seeds: Seeds = 20,
    captured_variant: CapturedVariant = "auto",
    from_: From = "",
    to: To = "",
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Say what other variants, and a split proxy, would have done with a captured flow on its own link."""
    from hindflight.replay.scenario.from_capture import Choice

    choice = Choice(listed(variants, "--variants"), listed(proxy, "--proxy"), seeds, captured_variant)
    job = Job(inputs, out, flow, choice, partial(capture_span, from_text=from_, to_text=to), threads)
    study(job, as_json)


@dataclass(frozen=True, slots=True)
class Job:
    """What to study: inputs, the folder for the results, the flow, what to compare, and what of a capture to read."""

    inputs: list[Path]
    out: Path
    flow: int | None
    choice: Choice
    span_of: SpanOf
    threads: int | None


def study(job: Job, as_json: bool) -> None:
    """Do the whole job and print its outcome; a folder that it made goes again if it fails."""
    fresh = not job.out.exists()
    try:
        _study(job, as_json)
    except BaseException:
        if fresh:
            shutil.rmtree(job.out, ignore_errors=True)
        raise


def _study(job: Job, as_json: bool) -> None:
    from hindflight.cli.replay import run, show
    from hindflight.replay.scenario.from_capture import check_choice
    from hindflight.reports.bundle import prepare
    from hindflight.toolkit.captured_flow import read_flow
    from hindflight.toolkit.ingest import Ingest
    from hindflight.toolkit.workspace import Workspace
    from hindflight.workflow import read_scenario, write_draft, write_report_of

    check_choice(job.choice)
    prepare()
    workspace = Workspace.open_or_create(job.out / "workspace")
    command = command_line()
    with progress_on_stderr() as report:
        read = Ingest(workspace, command, progress=report, span_of=job.span_of)(job.inputs)
    captures = {entry.input_id for entry in read if entry.kind == "capture"}
    chosen = read_flow(workspace, job.flow, captures)
    draft = job.out / "scenario.toml"
    write_draft(workspace, chosen, draft, job.choice)
    result = run(workspace, read_scenario(draft), job.out, job.threads)
    page = job.out / "report.html"
    write_report_of(workspace, page, f"{job.inputs[0].name}: what TCP did, and what it could have done", utc=False)
    show(result, as_json)
    say(f"report: {page}")
    again = shlex.join(["hindflight", "replay", str(draft), "-w", str(workspace.path)])
    say(f"to try another path, edit {draft} and run: {again}")
