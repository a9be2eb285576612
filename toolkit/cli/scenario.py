"""`hindflight scenario init`: a scenario file drafted from a capture, to edit and replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.output import say
from toolkit.cli.times import From, To, capture_span
from toolkit.errors import HindflightError

Variants = Annotated[str, typer.Option("--variants", help="TCP variants to compare, separated by commas.")]
Proxies = Annotated[
    str, typer.Option("--proxy", help="Nodes to split the connection at, separated by commas; none: no proxy.")
]
Seeds = Annotated[int, typer.Option("--seeds", min=0, help="Resampled runs of each variant.")]
CapturedVariant = Annotated[
    str, typer.Option("--captured-variant", help="The variant that was captured; auto: the nearest of all.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Scenario files: draft one from a capture.", no_args_is_help=True)
    group.command("init")(init)
    app.add_typer(group, name="scenario")


def init(
    source: Annotated[Path, typer.Argument(help="Capture or workspace.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Scenario file to write (TOML).")],
    flow: Annotated[int | None, typer.Option("--flow", help="Flow; without it the one with most data.")] = None,
    variants: Variants = "newreno,cubic",
    proxy: Proxies = "none,relay",
    seeds: Seeds = 20,
    captured_variant: CapturedVariant = "auto",
    from_: From = "",
    to: To = "",
) -> None:
    """Draft a scenario from a capture: estimates with their intervals as comments, losses in a trace."""
    from hindflight.steps import Choice, read_flow, write_draft
    from toolkit.source import open_source

    choice = Choice(listed(variants, "--variants"), listed(proxy, "--proxy"), seeds, captured_variant)
    with open_source(source, span=capture_span(source, from_, to)) as tables:
        chosen = read_flow(tables.workspace, flow)
        trace = write_draft(tables.workspace, chosen, out, choice)
    say(f"wrote {out} and {trace}")


def listed(text: str, option: str) -> tuple[str, ...]:
    """Split an option's value at its commas; HindflightError if nothing is left."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise HindflightError(f"{option} names nothing", f"as in {option} a,b")
    return names
