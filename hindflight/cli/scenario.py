"""`hindflight scenario init`: a scenario file drafted from a capture; `profiles`: what the stack profiles set;
`presets`: proxies as papers and programs have them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hindflight.cli.layout import Wide, paragraph, print_fitting
from hindflight.cli.output import AsJson, Force, print_json, print_table, say
from hindflight.cli.times import From, To, capture_span
from hindflight.toolkit.errors import HindflightError

Variants = Annotated[str, typer.Option("--variants", help="TCP variants to compare, separated by commas.")]
Proxies = Annotated[
    str,
    typer.Option(
        "--proxy",
        help="Proxies to try, separated by commas: sender-side, midway, receiver-side, relay, presets; chains with +. "
        "auto: none, and those that may help on the captured path.",
    ),
]
Seeds = Annotated[int, typer.Option("--seeds", min=0, help="Runs of each variant over resampled channels.")]
CapturedVariant = Annotated[
    str, typer.Option("--captured-variant", help="The captured variant; auto: the best-matching one.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    help_text = "Draft scenario files; list stack profiles and presets of proxies."
    group = typer.Typer(help=help_text, no_args_is_help=True)
    group.command("init")(init)
    group.command("profiles")(profiles)
    group.command("presets")(presets)
    app.add_typer(group, name="scenario")


def init(
    source: Annotated[Path, typer.Argument(help="Capture or workspace.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Scenario file to write (TOML).")],
    flow: Annotated[
        int | None, typer.Option("--flow", help="Flow number [default: the flow with the most data].")
    ] = None,
    variants: Variants = "newreno,cubic",
    proxy: Proxies = "auto",
    seeds: Seeds = 40,
    captured_variant: CapturedVariant = "auto",
    from_: From = "",
    to: To = "",
    force: Force = False,
) -> None:
    """Draft a scenario from a capture. Estimates carry their intervals as comments; losses go into a trace."""
    from hindflight.replay.scenario.from_capture import Choice
    from hindflight.toolkit.captured_flow import read_flow
    from hindflight.toolkit.files import check_outputs
    from hindflight.toolkit.source import files_of, open_source
    from hindflight.workflow import draft_files, write_draft

    check_outputs(draft_files(out), files_of(source), force=force)
    choice = Choice(listed(variants, "--variants"), listed(proxy, "--proxy"), seeds, captured_variant)
    with open_source(source, span=capture_span(source, from_, to)) as tables:
        chosen = read_flow(tables.workspace, flow)
        trace = write_draft(tables.workspace, chosen, out, choice, force=force)
    say(f"wrote {out} and {trace}")


def profiles(
    key: Annotated[str, typer.Argument(metavar="[KEY]", help="One key, with its meaning and source.")] = "",
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """List the keys that the stack profiles set. Every key of [flow] overrides its profile."""
    from dataclasses import asdict

    from hindflight.replay.scenario.profiles import find_setting, settings

    shown = (find_setting(key),) if key else settings()
    if as_json:
        print_json({"settings": [asdict(setting) for setting in shown]})
    elif key:
        (setting,) = shown
        paragraph(f"{setting.key}: {setting.meaning}")
        print_table(["profile", "value"], [{"profile": name, "value": value} for name, value in setting.values.items()])
        paragraph(f"allowed: {setting.allowed}")
        paragraph(f"source: {setting.source}")
    else:
        names = list(shown[0].values)
        print_fitting(["key", *names, "allowed"], [{**asdict(each), **each.values} for each in shown], wide)
        paragraph("hindflight scenario profiles KEY explains one key and gives the source of its values.")


def presets(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="One preset, as tables of a scenario.")] = "",
    as_json: AsJson = False,
) -> None:
    """List the presets of proxies. A [[proxy]] with one of them takes its keys and overrides any."""
    from dataclasses import asdict

    from hindflight.replay.scenario.presets import PRESETS, find_preset

    shown = (find_preset(name),) if name else tuple(PRESETS.values())
    if as_json:
        print_json({"presets": [{**asdict(preset), "text": preset.text()} for preset in shown]})
        return
    for preset in shown:
        paragraph(f"{preset.name}: {preset.summary}")
        if name:
            paragraph(f"source: {preset.source}")
            for line in preset.text().splitlines():
                say(line)
    if not name:
        paragraph("hindflight scenario presets NAME prints one as tables of a scenario.")


def listed(text: str, option: str) -> tuple[str, ...]:
    """Split an option's value at its commas; HindflightError if nothing is left."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise HindflightError(f"{option} is empty", f"as in {option} a,b")
    return names
