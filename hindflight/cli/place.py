"""`hindflight place`: where to put a proxy on a path, with which variant onward and how much memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hindflight.cli.layout import paragraph, print_fitting
from hindflight.cli.output import AsJson, print_json, progress_on_stderr
from hindflight.cli.replay import Threads
from hindflight.cli.scenario import listed

if TYPE_CHECKING:
    from hindflight.replay.experiment.compare import Interval
    from hindflight.replay.experiment.place import Ranked, Search


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("place")(place)


def place(
    scenario: Annotated[Path, typer.Argument(help="Scenario file (TOML).")],
    nodes: Annotated[str, typer.Option("--nodes", help="Nodes to try, separated by commas [default: all].")] = "",
    variants: Annotated[
        str, typer.Option("--variants", help="Variants of connections onward [default: that of the flow].")
    ] = "",
    cache: Annotated[int, typer.Option("--cache", min=1, max=1_000_000, help="Largest cache in packets.")] = 400,
    proxies: Annotated[int, typer.Option("--proxies", min=1, max=4, help="Proxies on the path at most.")] = 2,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Search the best places of split proxies. The flow has the first variant of the scenario."""
    from dataclasses import asdict

    from hindflight.replay.experiment.place import Space
    from hindflight.replay.experiment.place import place as search
    from hindflight.workflow import read_scenario

    tried = listed(nodes, "--nodes") if nodes else ()
    onward = listed(variants, "--variants") if variants else ()
    space = Space(tried, onward, cache, proxies)
    read = read_scenario(scenario)
    with progress_on_stderr() as progress:
        found = search(
            read,
            scenario.parent,
            space,
            threads=threads,
            report=lambda done, total: progress(Path("runs"), done / total),
        )
    if as_json:
        print_json(asdict(found))
    else:
        _print(found)


def _print(found: Search) -> None:
    rows = [_row("none", found.baseline_bps, None)]
    rows += [_row(each.placement.label, each.goodput_bps, each) for each in found.best]
    names = ("proxies", "goodput", "gain", "knee")
    print_fitting(names, rows, title=f"Goodput of {found.variant} in kbit/s, with its 95 % interval")
    paragraph(f"{found.candidates} placements in {found.runs} runs; the best are shown.")
    paragraph("knee: smallest cache with 95 % of the goodput of the largest, in packets.")
    paragraph("TCP inside IPsec and QUIC cannot be split: for such traffic none of these proxies does anything.")


def _row(label: str, goodput: Interval, ranked: Ranked | None) -> dict[str, str]:
    gain = "" if ranked is None else _kbps(ranked.gain_bps)
    knee = "" if ranked is None or ranked.knee_pkts is None else str(ranked.knee_pkts)
    return {"proxies": label, "goodput": _kbps(goodput), "gain": gain, "knee": knee}


def _kbps(value: Interval) -> str:
    if value.low is None or value.high is None:
        return f"{value.mean / 1e3:.0f}"
    return f"{value.mean / 1e3:.0f} ({value.low / 1e3:.0f} to {value.high / 1e3:.0f})"
