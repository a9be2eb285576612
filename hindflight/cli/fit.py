"""`hindflight channel fit`: which model of losses a trace follows, with intervals, and whether it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindflight.cli.output import AsJson, print_json, print_table, say

if TYPE_CHECKING:
    from collections.abc import Callable

    import altair as alt
    import pyarrow as pa

    from hindflight.channels.fitting.fit import Fit, Fits

Charts = Annotated[Path | None, typer.Option("--charts", help="Write pictures into this folder.")]
FromFormat = Annotated[str | None, typer.Option("--from", help="Format of the trace, where its name does not tell.")]


def fit(
    trace: Annotated[Path, typer.Argument(help="Trace with packets: Parquet, CSV, or any format of `convert`.")],
    model: Annotated[list[str] | None, typer.Option("--model", help="Model to fit; without it all.")] = None,
    level: Annotated[float, typer.Option("--level", help="How often intervals hold the truth.")] = 0.95,
    charts: Charts = None,
    form: FromFormat = None,
    as_json: AsJson = False,
) -> None:
    """Fit loss models by maximum likelihood: parameters with intervals, AIC, BIC, and whether each fits."""
    from hindflight.channels.fitting.fit import fit_models, pictured
    from hindflight.channels.fitting.loss_sequence import fates_of
    from hindflight.channels.formats import read_channel

    fates = fates_of(read_channel(trace, form), str(trace))
    fits = fit_models(fates, model or ["all"], level)
    if as_json:
        print_json(_document(fits, fates.outage, fates.unsure))
    else:
        _print(fits, str(trace))
        _print_left_out(fates.outage, fates.unsure)
    if charts is not None:
        draw(pictured(fits), charts)


def draw(tables: dict[str, pa.Table], folder: Path) -> None:
    """Write a picture per table into `folder`, and say so."""
    import polars as pl

    from hindflight.reports.charts.channel import autocorrelation, run_lengths, skyline, states
    from hindflight.reports.exports import write_chart
    from hindflight.toolkit.files import plain_os_errors

    with plain_os_errors(f"making {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    drawing: dict[str, Callable[[pl.DataFrame], alt.TopLevelMixin]] = {
        "states": states,
        "runs": run_lengths,
        "autocorrelation": autocorrelation,
        "skyline": skyline,
    }
    for name, table in tables.items():
        say(f"wrote {write_chart(drawing[name](pl.DataFrame(pl.from_arrow(table))), folder / f'{name}.png')}")


def _document(fits: Fits, outage: int, unsure: int) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "packets": fits.packets,
        "losses": fits.losses,
        "outage_losses_left_out": outage,
        "losses_not_known_for_certain": unsure,
        "level": fits.level,
        "best": fits.best.model,
        "period": None if fits.period is None else asdict(fits.period),
        "fits": [{name: value for name, value in asdict(fit).items() if name != "expected"} for fit in fits.fits],
    }


def _print(fits: Fits, where: str) -> None:
    names = ("model", "parameters", "log likelihood", "AIC", "BIC", "verdict")
    rows = [
        dict(
            zip(
                names,
                (
                    fit.model,
                    len(fit.parameters),
                    f"{fit.log_likelihood:.1f}",
                    f"{fit.aic:.1f}",
                    f"{fit.bic:.1f}",
                    fit.verdict,
                ),
                strict=True,
            )
        )
        for fit in fits.fits
    ]
    print_table(names, rows, title=f"{where}: {fits.losses} of {fits.packets} packets lost; lowest BIC first")
    if fits.period is not None:
        lost, every = fits.period.losses, fits.period.packets
        print(f"The losses are periodic: {lost} of every {every} packets, at the same positions of each period.")
        print('No random model fits. Replay them by position: loss = { model = "trace", file = … }')
    for fit in fits.fits:
        _print_fit(fit, fits.level)


def _print_fit(fit: Fit, level: float) -> None:
    names = ("parameter", "value", "standard error", f"{100 * level:g} % interval")
    rows = []
    for p in fit.parameters:
        error = "-" if p.standard_error is None else f"{p.standard_error:.3g}"
        high = "no limit" if p.high is None else f"{p.high:.4g}"
        rows.append(dict(zip(names, (p.name, f"{p.value:.5g}", error, f"{p.low:.4g} to {high}"), strict=True)))
    print_table(names, rows, title=f"{fit.model}: {fit.verdict}")
    for test in fit.tests:
        if test.p_value is None:
            print(f"  {test.name}: too few losses to test")
        else:
            print(f"  {test.name}: chi-square {test.statistic:.1f} on {test.freedom}, p = {test.p_value:.2g}")
            if fit.verdict == "does not fit" and test.p_value < 0.01:
                print(f"    {test.worst}")
    if not fit.identified:
        print("  The trace does not tell all parameters: several values are as likely.")


def _print_left_out(outage: int, unsure: int) -> None:
    if outage:
        print(f"{outage} packets lost in outages are left out: an outage has a time, not a position.")
    if unsure:
        print(f"Of {unsure} losses the capture does not tell for certain that the channel took them.")
