"""`hindflight channel spread`: how much a replay of a captured channel hangs on how its losses are replayed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.output import AsJson, print_json, print_table

if TYPE_CHECKING:
    from hindflight.replay.experiment.sensitivity import Outcome, Spread


def spread(
    scenario: Annotated[Path, typer.Argument(help="Scenario file (TOML) with a loss trace.")],
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Threads; without it one per core.")] = None,
    as_json: AsJson = False,
) -> None:
    """Replay a captured channel by position, by time and by a fitted model, and say how far apart the results lie."""
    from hindflight.replay.experiment.sensitivity import measure_spread
    from hindflight.workflow import read_scenario

    found = measure_spread(read_scenario(scenario), scenario.parent, threads=threads)
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


def _print(found: Spread) -> None:
    from hindflight.replay.experiment.sensitivity import WAYS

    names = ("variant", "proxy", *WAYS, "spread %")
    rows = []
    for variant, proxy in found.subjects():
        mine = {o.way: _kbps(o) for o in found.outcomes if (o.variant, o.proxy) == (variant, proxy)}
        values = (variant, proxy, *(mine[way] for way in WAYS), f"{100 * found.of(variant, proxy):.1f}")
        rows.append(dict(zip(names, values, strict=True)))
    print_table(names, rows, title="Goodput in kbit/s by the way in which the losses are replayed")
    for way, what in WAYS.items():
        print(f"{way}: {what}")
    for name, (model, verdict) in found.fits.items():
        print(f"The model of {name} is {model}: {verdict}.")
    if found.same_order():
        print("All ways put variants and proxies in the same order.")
    else:
        print("The ways put variants and proxies in different orders: this capture does not decide between them.")


def _kbps(outcome: Outcome) -> str:
    value = f"{outcome.goodput_bps / 1e3:.0f}"
    if outcome.low_bps is None or outcome.high_bps is None:
        return value
    return f"{value} ({outcome.low_bps / 1e3:.0f} to {outcome.high_bps / 1e3:.0f})"
