"""`hindflight variants [NAME]`: the TCP variants that a replay can run, and the parameters of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from hindflight.cli.output import AsJson, print_json, print_table


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("variants")(variants)


def variants(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Variant whose parameters to list.")] = "",
    as_json: AsJson = False,
) -> None:
    """List the TCP variants: family, source, year. With a name: its parameters, defaults, units and sources."""
    from hindflight.replay.catalogue import catalogue, find_variant
    from hindflight.replay.scenario.profiles import PROFILES

    shown = (find_variant(name),) if name else catalogue()
    if as_json:
        print_json({"variants": [asdict(variant) for variant in shown]})
    elif not name:
        rows = [{**asdict(variant), "parameters": len(variant.parameters)} for variant in shown]
        print_table(["name", "family", "year", "source", "parameters", "summary"], rows)
        typer.echo("hindflight variants NAME lists its parameters; hindflight scenario profiles: what the stacks set.")
    else:
        variant = shown[0]
        others = f"; also called {', '.join(variant.other_names)}" if variant.other_names else ""
        typer.echo(f"{variant.name}: {variant.summary} ({variant.source}, {variant.year}){others}")
        if variant.parameters:
            names = ["name", "default", "allowed", "unit", "source", "meaning"]
            print_table(names, [asdict(parameter) for parameter in variant.parameters])
            if set(variant.profiles) < set(PROFILES):
                typer.echo(f"Under the {_listed(variant.profiles)} alone: others fix them.")
            typer.echo("A scenario sets them in [variants.NAME]; a time or a rate is a text with its unit there.")
        else:
            typer.echo("No parameters of its own.")


def _listed(profiles: Sequence[str]) -> str:
    return f"profile{'s' if len(profiles) > 1 else ''} {' and '.join(profiles)}"
