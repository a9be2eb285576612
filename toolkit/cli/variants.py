"""`hindflight variants [NAME]`: the TCP variants that a replay can run, and the parameters of one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from toolkit.cli.output import AsJson, print_json, print_table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("variants")(variants)


def variants(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Variant whose parameters to list.")] = "",
    as_json: AsJson = False,
) -> None:
    """List the TCP variants: family, source, year. With a name: its parameters, defaults, units and sources."""
    from replay.catalogue import catalogue, find_variant

    shown = (find_variant(name),) if name else catalogue()
    if as_json:
        print_json({"variants": [asdict(variant) for variant in shown]})
    elif not name:
        rows = [{**asdict(variant), "parameters": len(variant.parameters)} for variant in shown]
        print_table(["name", "family", "year", "source", "parameters", "summary"], rows)
        typer.echo("hindflight variants NAME lists its parameters; docs/variants has a page for each.")
    else:
        variant = shown[0]
        typer.echo(f"{variant.name}: {variant.summary} ({variant.source}, {variant.year})")
        if variant.parameters:
            names = ["name", "default", "allowed", "unit", "source", "meaning"]
            print_table(names, [asdict(parameter) for parameter in variant.parameters])
        else:
            typer.echo("No parameters of its own.")
