"""`hindflight variants [NAME]`: the TCP variants that a replay can run, and the parameters of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.layout import Wide, paragraph, print_list
from hindflight.cli.output import AsJson, print_json, print_table

if TYPE_CHECKING:
    from hindflight.replay.catalogue import Parameter


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("variants")(variants)


def variants(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Variant whose parameters to list.")] = "",
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """List the TCP variants, or the parameters of one."""
    from hindflight.replay.catalogue import catalogue, find_variant
    from hindflight.replay.scenario.profiles import ENGINE_PROFILES

    shown = (find_variant(name),) if name else catalogue()
    if as_json:
        print_json({"variants": [asdict(variant) for variant in shown]})
    elif not name and not wide:
        print_list((variant.name, variant.summary) for variant in shown)
        paragraph("hindflight variants NAME lists its parameters; --wide adds family, year, source and parameters.")
    elif not name:
        rows = [{**asdict(variant), "parameters": len(variant.parameters)} for variant in shown]
        print_table(["name", "family", "year", "source", "parameters", "summary"], rows)
    else:
        variant = shown[0]
        others = f"; also called {', '.join(variant.other_names)}" if variant.other_names else ""
        paragraph(f"{variant.name}: {variant.summary} ({variant.source}, {variant.year}){others}")
        if variant.parameters:
            if wide:
                names = ["name", "default", "allowed", "unit", "source", "meaning"]
                print_table(names, [asdict(parameter) for parameter in variant.parameters])
            else:
                print_list((each.name, _described(each)) for each in variant.parameters)
            if set(variant.profiles) < set(ENGINE_PROFILES):
                paragraph(f"They apply under the {_listed(variant.profiles)} only; other profiles fix them.")
            paragraph("A scenario sets them in [variants.NAME]; write a time or a rate as a string with its unit.")
        else:
            paragraph("It has no parameters.")


def _described(parameter: Parameter) -> str:
    unit = f" {parameter.unit}" if parameter.unit else ""
    return f"{parameter.meaning} Default {parameter.default}{unit}, allowed {parameter.allowed}."


def _listed(profiles: Sequence[str]) -> str:
    return f"profile{'s' if len(profiles) > 1 else ''} {' and '.join(profiles)}"
