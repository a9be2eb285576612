"""`hindflight channel fit`: which model of losses a trace follows, with intervals, and whether it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindflight.cli.layout import Wide, paragraph, print_fitting
from hindflight.cli.output import AsJson, Force, echo, print_json, say

if TYPE_CHECKING:
    from collections.abc import Callable

    import altair as alt
    import pyarrow as pa

    from hindflight.channels.fitting.fit import Fit, Fits

Charts = Annotated[Path | None, typer.Option("--charts", help="Write pictures into this folder.")]
CHARTS = ("states", "runs", "autocorrelation", "skyline")
"""Pictures that `--charts` may write."""
FromFormat = Annotated[str | None, typer.Option("--from", help="Input format, if the file name does not show it.")]


def fit(
    trace: Annotated[Path, typer.Argument(help="Trace with packets: Parquet, CSV, or any format of `convert`.")],
    model: Annotated[list[str] | None, typer.Option("--model", help="Model to fit, repeatable [default: all].")] = None,
    level: Annotated[float, typer.Option("--level", help="Confidence level of the intervals.")] = 0.95,
    charts: Charts = None,
    form: FromFormat = None,
    force: Force = False,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Fit loss models by maximum likelihood. Prints parameters with intervals, BIC and goodness of fit."""
    from hindflight.channels.fitting.fit import chart_data, fit_models
    from hindflight.channels.fitting.loss_sequence import loss_sequence_of
    from hindflight.channels.formats import read_channel

    if charts is not None:
        check_charts(charts, [trace], force=force)
    sequence = loss_sequence_of(read_channel(trace, form), str(trace))
    fits = fit_models(sequence, model or ["all"], level)
    if as_json:
        print_json(_document(fits, sequence.outage, sequence.uncertain))
    else:
        _print(fits, str(trace), wide)
        _print_left_out(sequence.outage, sequence.uncertain)
    if charts is not None:
        draw(chart_data(fits), charts)


def check_charts(folder: Path, inputs: list[Path], *, force: bool) -> None:
    """Check that `draw` may write into `folder`: see `check_outputs`."""
    from hindflight.toolkit.files import check_outputs

    check_outputs([folder / f"{name}.png" for name in CHARTS], inputs, force=force)


def draw(tables: dict[str, pa.Table], folder: Path) -> None:
    """Write a picture per table into `folder`, and say so."""
    import polars as pl

    from hindflight.reports.charts.channel import autocorrelation, run_lengths, skyline, states
    from hindflight.reports.exports import write_chart
    from hindflight.toolkit.files import plain_os_errors

    with plain_os_errors(f"making {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    drawing: dict[str, Callable[[pl.DataFrame], alt.TopLevelMixin]] = {
        **dict(zip(CHARTS, (states, run_lengths, autocorrelation, skyline), strict=True))
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


def _print(fits: Fits, where: str, wide: bool) -> None:
    names = ("model", "parameters", "BIC", "verdict", "AIC", "log likelihood")
    rows = [
        dict(
            zip(
                names,
                (
                    fit.model,
                    len(fit.parameters),
                    f"{fit.bic:.1f}",
                    fit.verdict,
                    f"{fit.aic:.1f}",
                    f"{fit.log_likelihood:.1f}",
                ),
                strict=True,
            )
        )
        for fit in fits.fits
    ]
    print_fitting(names, rows, wide, f"{where}: {fits.losses} of {fits.packets} packets lost; lowest BIC first")
    if fits.period is not None:
        lost, every = fits.period.losses, fits.period.packets
        paragraph(f"The losses are periodic: {lost} of every {every} packets, at the same positions of each period.")
        paragraph('No random model fits. Replay them by position: loss = { model = "trace", file = … }')
    for fit in fits.fits:
        _print_fit(fit, fits.level)


def _print_fit(fit: Fit, level: float) -> None:
    names = ("parameter", "value", f"{100 * level:g} % interval", "standard error")
    rows = []
    for p in fit.parameters:
        error = "-" if p.standard_error is None else f"{p.standard_error:.3g}"
        high = "no limit" if p.high is None else f"{p.high:.4g}"
        rows.append(dict(zip(names, (p.name, f"{p.value:.5g}", f"{p.low:.4g} to {high}", error), strict=True)))
    print_fitting(names, rows, title=f"{fit.model}: {fit.verdict}")
    for test in fit.tests:
        if test.p_value is None:
            echo(f"  {test.name}: too few losses to test")
        else:
            echo(f"  {test.name}: chi-square {test.statistic:.1f} on {test.freedom}, p = {test.p_value:.2g}")
            if fit.verdict == "does not fit" and test.p_value < 0.01:
                echo(f"    {test.worst}")
    if not fit.identified:
        paragraph("  The trace does not determine all parameters: several values are equally likely.", "  ")


def _print_left_out(outage: int, unsure: int) -> None:
    if outage:
        paragraph(f"{outage} packets lost in outages are left out: an outage has a time, not a position.")
    if unsure:
        paragraph(f"For {unsure} losses the capture does not show for certain that the channel caused them.")
