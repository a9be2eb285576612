"""`hindflight whatif CAPTURE`: extract, draft, self-check, replay and report in one step."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.output import AsJson, command_line, progress_on_stderr, say
from toolkit.cli.replay import Threads
from toolkit.cli.scenario import CapturedVariant, Proxies, Seeds, Variants, listed

if TYPE_CHECKING:
    from toolkit.cli.steps import Choice


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
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Say what other variants, and a split proxy, would have done with a captured flow on its own link."""
    from toolkit.cli.steps import Choice

    choice = Choice(listed(variants, "--variants"), listed(proxy, "--proxy"), seeds, captured_variant)
    study(inputs, out, flow, choice, threads, as_json)


def study(inputs: list[Path], out: Path, flow: int | None, choice: Choice, threads: int | None, as_json: bool) -> None:
    """Do the whole job into folder `out` and print its outcome; a folder that it made goes again if it fails."""
    fresh = not out.exists()
    try:
        _study(inputs, out, flow, choice, threads, as_json)
    except BaseException:
        if fresh:
            shutil.rmtree(out, ignore_errors=True)
        raise


def _study(inputs: list[Path], out: Path, flow: int | None, choice: Choice, threads: int | None, as_json: bool) -> None:
    from reports.bundle import prepare
    from toolkit.cli.replay import run, show
    from toolkit.cli.steps import check_choice, read_flow, read_scenario, write_draft, write_report_of
    from toolkit.ingest import Ingest
    from toolkit.workspace import Workspace

    check_choice(choice)
    prepare()
    workspace = Workspace.open_or_create(out / "workspace")
    command = command_line()
    with progress_on_stderr() as report:
        read = Ingest(workspace, command, progress=report)(inputs)
    captures = {entry.input_id for entry in read if entry.kind == "capture"}
    chosen = read_flow(workspace, flow, captures)
    draft = out / "scenario.toml"
    write_draft(workspace, chosen, draft, choice)
    result = run(workspace, read_scenario(draft), out, command, threads)
    page = out / "report.html"
    write_report_of(workspace, page, f"{inputs[0].name}: what TCP did, and what it could have done", utc=False)
    show(result, as_json)
    say(f"report: {page}")
    again = shlex.join(["hindflight", "replay", str(draft), "-w", str(workspace.path)])
    say(f"to try another path, edit {draft} and run: {again}")
