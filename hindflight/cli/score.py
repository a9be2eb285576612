"""`hindflight score WORKSPACE`: the inferred cwnd against the kernel's own; toolkit/score.py says how."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindflight.cli.layout import Wide, print_fitting
from hindflight.cli.output import AsJson, print_json

if TYPE_CHECKING:
    from hindflight.toolkit.score import Score


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("score")(score)


def score(
    workspace: Annotated[Path, typer.Argument(help="Workspace with a capture and its kernel log.")],
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Compare inferred cwnd with the kernel's. One comparison per round trip."""
    from hindflight.toolkit.score import score as compare
    from hindflight.toolkit.workspace import Workspace

    scores = compare(Workspace.open(workspace))
    if as_json:
        print_json({"scores": [asdict(one) for one in scores]})
    else:
        rows = [_shown(one) for one in scores]
        print_fitting(list(rows[0]), rows, wide)


def _shown(one: Score) -> dict[str, Any]:
    return {
        "flow": one.flow_id,
        "against": one.truth,
        "median error": _percent(one.median_error),
        "95th pct.": _percent(one.p95_error),
        "bias": _percent(one.bias),
        "coverage": _percent(one.coverage),
        "RTTs": one.rtts,
        "compared": one.compared,
    }


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.2f} %"
