"""`hindflight channel convert` and `channel show`: traces in other tools' formats, and what a trace is like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.fit import Charts, FromFormat, draw
from toolkit.cli.output import AsJson, print_json, print_table, say

if TYPE_CHECKING:
    from channels.statistics import Statistic


def convert(
    source: Annotated[Path, typer.Argument(help="Channel in any format, plain, .gz or .xz.")],
    out: Annotated[Path, typer.Argument(help="File to write; its name tells the format.")],
    form: FromFormat = None,
    to: Annotated[str | None, typer.Option("--to", help="Format to write, where the name does not tell.")] = None,
) -> None:
    """Convert a channel: Parquet, CSV, Mahimahi, TheaterQ, netem, ns-2, ns-3; says what the format cannot hold."""
    from channels.interop import read_channel, write_channel

    trace = read_channel(source, form)
    for sentence in trace.unknowns:
        say(f"{source.name}: {sentence}")
    for sentence in write_channel(trace, out, to):
        say(f"{out.name}: {sentence}.")
    say(f"wrote {out}")


def show(
    source: Annotated[Path, typer.Argument(help="Channel in any format.")],
    charts: Charts = None,
    form: FromFormat = None,
    as_json: AsJson = False,
) -> None:
    """Show what a channel is like: losses, their runs and autocorrelation, rates, delays, outages."""
    from channels.interop import read_channel
    from channels.statistics import pictured, statistics

    trace = read_channel(source, form)
    rows = statistics(trace, str(source))
    if as_json:
        print_json(
            {
                "statistics": [
                    {"section": row.section, "name": row.name, "value": row.value, "unit": row.unit} for row in rows
                ],
                "unknowns": list(trace.unknowns),
            }
        )
    else:
        for section in dict.fromkeys(row.section for row in rows):
            mine = [{"what": row.name, "value": _quantity(row)} for row in rows if row.section == section]
            print_table(("what", "value"), mine, title=section)
        for sentence in trace.unknowns:
            print(sentence)
    if charts is not None:
        draw(pictured(trace, str(source)), charts)


def _quantity(row: Statistic) -> str:
    from toolkit.units import format_rate, format_time

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
