"""`hindflight validate`: how far the engine agrees with the Linux stack and with closed forms; replay/validation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolkit.cli.output import AsJson, print_json, print_table, progress_on_stderr, say
from toolkit.cli.replay import Threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from replay.validation.judge import Check
    from replay.validation.linux import RunResult


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("validate")(validate)


def validate(
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Folder of recorded runs of the Linux stack; without it, closed forms only."),
    ] = None,
    closed_forms: Annotated[
        bool, typer.Option(help="Compare with closed forms, too; they take most of the time.")
    ] = True,
    write: Annotated[Path | None, typer.Option("--write", help="Also write the tables as a Markdown page.")] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Hold the engine beside closed forms and recorded Linux runs. A miss is shown, not an error."""
    from replay.validation.closed_forms import validate_closed_forms
    from replay.validation.linux import validate_runs
    from replay.validation.page import render_page
    from toolkit.files import plain_os_errors

    results: list[RunResult] = []
    if data is not None:
        folder = data
        with progress_on_stderr() as report:
            results = validate_runs(folder, threads=threads, on_done=lambda done, of: report(folder, done / of))
    closed = validate_closed_forms(threads=threads) if closed_forms else []
    if write is not None:
        with plain_os_errors(f"writing {write}"):
            write.write_text(render_page(results, closed))
    if as_json:
        print_json(_document(results, closed))
    else:
        _show(results, closed)
    if data is None:
        say("closed forms only: --data takes a folder of recorded runs of the Linux stack")


def _document(results: Sequence[RunResult], closed: Sequence[Check]) -> dict[str, Any]:
    from dataclasses import asdict

    from replay.validation.judge import finding

    checks = [check for run in results for check in run.checks] + list(closed)
    return {
        "findings": [finding(check) for check in checks],
        "divergences": [
            {"subject": flow.subject, **asdict(divergence)}
            for run in results
            for flow in run.flows
            for divergence in flow.divergences
        ],
    }


def _show(results: Sequence[RunResult], closed: Sequence[Check]) -> None:
    from replay.validation.tables import closed_form_table, linux_table, missing, summary

    tables = [linux_table(results)] if results else []
    tables += [closed_form_table(closed)] if closed else []
    for table in tables:
        print_table(list(table.rows[0]), table.rows, table.title)
        if table.bounds:
            print(f"{table.bounds}\n")
    for line in missing(results, closed):
        print(f"miss: {line}")
    for line in summary(results, closed):
        print(line)
