"""`hindflight batch CAPTURE|DIR...`: what `whatif` runs, on every capture, without questions; for cron and CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.layout import Wide, print_fitting
from hindflight.cli.output import AsJson, Force, print_json, say
from hindflight.cli.replay import Threads
from hindflight.cli.scenario import CapturedVariant, Proxies, Seeds, Variants, listed

if TYPE_CHECKING:
    from hindflight.batches import Batch, Study

_COLUMNS = ("capture", "state", "Mbit/s", "self-check", "best", "gain %", "seconds", "report")

_MAX_NAMED = 5
"""Up to so many of the files that were passed over are named on the terminal; `summary.json` lists all of them."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("batch")(batch)


def batch(
    inputs: Annotated[list[Path], typer.Argument(metavar="CAPTURE|DIR...", help="Captures, or folders to search.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for a folder per capture, and summary.json.")],
    variants: Variants = "newreno,cubic",
    proxy: Proxies = "auto",
    seeds: Seeds = 40,
    captured_variant: CapturedVariant = "auto",
    threads: Threads = None,
    force: Force = False,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Run whatif on many captures. A rerun does only what is new; a bad file never stops the rest.

    Exit code 0 if every capture has its report; 2 if a capture is at fault, 3 the machine, 1 hindflight.
    """
    from hindflight.batches import Settings, run_batch
    from hindflight.replay.scenario.from_capture import Choice

    choice = Choice(listed(variants, "--variants"), listed(proxy, "--proxy"), seeds, captured_variant)
    result = run_batch(inputs, out, Settings(choice, threads, force, _say))
    if as_json:
        print_json(result.to_dict())
    else:
        _show(result, wide)
    if passed := result.passed_over:
        named = ", ".join(passed[:_MAX_NAMED]) + (" and others" if len(passed) > _MAX_NAMED else "")
        why = "not a capture" if len(passed) == 1 else f"{len(passed)} files that are not captures"
        say(f"passed over, {why}: {named}")
    say(f"summary: {result.summary}")
    raise typer.Exit(result.exit_code)


def _say(number: int, total: int, study: Study) -> None:
    outcome = f"failed: {study.error}" if study.state == "failed" else study.state
    say(f"{number}/{total} {study.capture}: {outcome}")


def _names(result: Batch) -> list[str]:
    """Return the captures without the folder that all have in common: files of different folders may have one name."""
    paths = [Path(study.capture) for study in result.studies]
    common = Path(os.path.commonpath([Path(os.path.abspath(path.parent)) for path in paths]))
    return [Path(os.path.abspath(path)).relative_to(common).as_posix() for path in paths]


def _show(result: Batch, wide: bool) -> None:
    rows = []
    for name, study in zip(_names(result), result.studies, strict=True):
        gain = study.gain_percent
        values = (
            name,
            study.state,
            "-" if study.goodput_bps is None else f"{study.goodput_bps / 1e6:.3f}",
            study.self_check or "-",
            study.best or "-",
            "-" if gain is None else f"{gain[0]:+.1f} ({gain[1]:+.1f} to {gain[2]:+.1f})",
            f"{study.seconds:.1f}",
            study.report or "-",
        )
        rows.append(dict(zip(_COLUMNS, values, strict=True)))
    print_fitting(_COLUMNS, rows, wide, "Studies")
