"""`hindflight channel convert` and `channel show`: traces in other tools' formats, and what a trace is like."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.fit import Charts, FromFormat, check_charts, draw
from hindflight.cli.layout import paragraph
from hindflight.cli.output import AsJson, Force, print_json, print_table, say
from hindflight.cli.quantities import stretch_rows
from hindflight.cli.synth import Packets, Seed, Settings, Span

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.channels.fitting.statistics import Statistic
    from hindflight.channels.trace import Trace


def convert(
    source: Annotated[Path, typer.Argument(help="Channel in any format, plain, .gz or .xz.")],
    out: Annotated[Path, typer.Argument(help="File to write; its suffix selects the format.")],
    form: FromFormat = None,
    to: Annotated[str | None, typer.Option("--to", help="Output format, if the file name does not show it.")] = None,
    force: Force = False,
) -> None:
    """Convert a channel to another format. Parquet, CSV, Mahimahi, TheaterQ, netem, ns-2, ns-3."""
    from hindflight.channels.formats import read_channel, write_channel
    from hindflight.toolkit.files import check_outputs

    check_outputs([out], [source], force=True)
    trace = read_channel(source, form)
    lacking = write_channel(trace, out, to, force=force)
    for sentence in trace.unknowns:
        say(f"{source.name}: {sentence}")
    for sentence in lacking:
        say(f"{out.name}: {sentence}.")
    say(f"wrote {out}")


def show(
    source: Annotated[str, typer.Argument(help="Channel in any format, a model or its TOML file, or a skyline (CSV).")],
    charts: Charts = None,
    form: FromFormat = None,
    settings: Settings = None,
    duration: Span = "60 s",
    packets: Packets = 100_000,
    seed: Seed = 1,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Print statistics of a channel. Losses, their runs and autocorrelation, rates, delays, outages.

    For a model, a channel is generated first, as `channel synth` does.
    """
    from hindflight.channels.fitting.statistics import chart_data, statistics
    from hindflight.channels.models.skyline import is_skyline

    if charts is not None:
        check_charts(charts, [Path(source)], force=force)
    if is_skyline(Path(source)):
        _show_skyline(Path(source), charts)
        return
    trace, skyline = _trace_of(source, form, Drawing(settings or [], duration, packets, seed))
    rows = statistics(trace, source)
    if as_json:
        print_json(
            {
                "statistics": [
                    {"section": row.section, "name": row.name, "value": row.value, "unit": row.unit} for row in rows
                ],
                "stretches": [asdict(one) for one in trace.stretches],
                "unknowns": list(trace.unknowns),
            }
        )
    else:
        for section in dict.fromkeys(row.section for row in rows):
            mine = [{"what": row.name, "value": _quantity(row)} for row in rows if row.section == section]
            print_table(("what", "value"), mine, title=section)
        if trace.stretches:
            names, listed = stretch_rows(trace.stretches)
            print_table(names, listed, title="The link between its steps")
        for sentence in trace.unknowns:
            paragraph(sentence)
    if charts is not None:
        draw({**chart_data(trace, source), **({} if skyline is None else {"skyline": skyline})}, charts)


@dataclass(frozen=True, slots=True)
class Drawing:
    """How a channel is generated from a model: parameters as KEY=VALUE, how long, how many packets, and the seed."""

    settings: list[str]
    duration: str
    packets: int
    seed: int


def _trace_of(source: str, form: str | None, drawing: Drawing) -> tuple[Trace, pa.Table | None]:
    """The trace of a file, or one generated from a model, and the skyline of a street."""
    from hindflight.channels.formats import read_channel
    from hindflight.channels.models.skyline import chart_data
    from hindflight.channels.models.street import Street
    from hindflight.channels.models.synth import MODELS, Extent, read_model, synthesise_trace
    from hindflight.cli.synth import setting, span_ns

    path = Path(source)
    if form is not None or (path.suffix != ".toml" and (path.exists() or source not in MODELS)):
        return read_channel(path, form), None
    model = read_model(source, dict(setting(text) for text in drawing.settings))
    span = span_ns(drawing.duration)
    trace = synthesise_trace(model, seed=drawing.seed, extent=Extent(span, drawing.packets))
    return trace, chart_data(model.skyline_for(span, drawing.seed)) if isinstance(model, Street) else None


def _show_skyline(path: Path, charts: Path | None) -> None:
    from hindflight.channels.models.skyline import chart_data, read_skyline

    skyline = read_skyline(path, width_m=1.0, lateral=0.5)
    rows = []
    for side, buildings in (("left", skyline.left), ("right", skyline.right)):
        heights = sorted(height for _, _, height in buildings)
        median = f"{heights[len(heights) // 2]:.1f} m" if heights else "-"
        built = sum(end - start for start, end, _ in buildings) / skyline.length_m
        rows.append({"side": side, "buildings": len(heights), "median height": median, "built": f"{100 * built:.0f} %"})
    print_table(("side", "buildings", "median height", "built"), rows, title=f"Street of {skyline.length_m:.0f} m")
    if charts is not None:
        draw({"skyline": chart_data(skyline)}, charts)


def _quantity(row: Statistic) -> str:
    from hindflight.toolkit.units import format_rate, format_time

    if row.value is None:
        return "-"
    match row.unit:
        case "bit/s":
            return format_rate(row.value)
        case "ns":
            return format_time(row.value)
        case "" if isinstance(row.value, float):
            return f"{row.value:.4g}"
        case _:
            return f"{row.value:.6g} {row.unit}".rstrip()
