"""`hindflight channel models [NAME]`: the channel models, and the keys of one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from hindflight.cli.layout import paragraph, print_list
from hindflight.cli.output import AsJson, print_json


def models(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Model whose keys to list.")] = "",
    as_json: AsJson = False,
) -> None:
    """List the channel models, or the keys of one."""
    from hindflight.channels.models.reference import find_model, model_references

    shown = [find_model(name)] if name else model_references()
    if as_json:
        print_json({"models": [asdict(model) for model in shown]})
    elif not name:
        print_list((model.name, model.summary) for model in shown)
        paragraph("hindflight channel models NAME lists the keys of one.")
    else:
        model = shown[0]
        paragraph(f"{model.name}: {model.summary} It advances {model.advances}.")
        print_list((key.name, _described(key.allowed, key.default)) for key in model.keys)
        paragraph("The same keys are parameters of `channel synth -p KEY=VALUE` and of a link in a scenario.")


def _described(allowed: str, default: str | None) -> str:
    return f"{allowed[0].upper()}{allowed[1:]}. {'Required' if default is None else f'Default {default}'}."
