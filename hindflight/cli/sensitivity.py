"""`hindflight channel sensitivity`: how far goodput depends on the method that replays captured losses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.layout import paragraph, print_fitting
from hindflight.cli.output import AsJson, print_json
from hindflight.cli.replay import Threads

if TYPE_CHECKING:
    from hindflight.replay.experiment.sensitivity import Outcome, Sensitivity


def sensitivity(
    scenario: Annotated[Path, typer.Argument(help="Scenario file (TOML) with a loss trace.")],
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Measure the sensitivity to the loss model. Replays losses by position, by time and by a fitted model."""
    from hindflight.replay.experiment.sensitivity import measure_sensitivity
    from hindflight.workflow import read_scenario

    found = measure_sensitivity(read_scenario(scenario), scenario.parent, threads=threads)
    if as_json:
        from dataclasses import asdict

        print_json(
            {
                "outcomes": [asdict(outcome) for outcome in found.outcomes],
                "spread": [
                    {"variant": variant, "proxy": proxy, "share": found.of(variant, proxy)}
                    for variant, proxy in found.subjects()
                ],
                "fits": {name: {"model": model, "verdict": verdict} for name, (model, verdict) in found.fits.items()},
                "same_order_in_all_ways": found.same_order(),
            }
        )
    else:
        _print(found)


def _print(found: Sensitivity) -> None:
    from hindflight.replay.experiment.sensitivity import WAYS

    names = ("variant", "proxy", "spread %", *WAYS)
    rows = []
    for variant, proxy in found.subjects():
        mine = {o.way: _kbps(o) for o in found.outcomes if (o.variant, o.proxy) == (variant, proxy)}
        values = (variant, proxy, f"{100 * found.of(variant, proxy):.1f}", *(mine[way] for way in WAYS))
        rows.append(dict(zip(names, values, strict=True)))
    print_fitting(names, rows, title="Goodput in kbit/s by the method that replays the losses")
    for way, what in WAYS.items():
        paragraph(f"{way}: {what}")
    for name, (model, verdict) in found.fits.items():
        paragraph(f"The model of {name} is {model}: {verdict}.")
    if found.same_order():
        paragraph("All methods rank variants and proxies in the same order.")
    else:
        paragraph(
            "The methods rank variants and proxies in different orders: this capture does not decide between them."
        )


def _kbps(outcome: Outcome) -> str:
    value = f"{outcome.goodput_bps / 1e3:.0f}"
    if outcome.low_bps is None or outcome.high_bps is None:
        return value
    return f"{value} ({outcome.low_bps / 1e3:.0f} to {outcome.high_bps / 1e3:.0f})"
