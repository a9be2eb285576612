"""Prints the tables of docs/proxies.md, "What sets the knee": what moves the cache that a proxy needs.

`python -m docs.scripts.make_knee_rows` takes some minutes. Each row changes haps.toml or onboard.toml in one point.
"""

from __future__ import annotations

import copy
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hindflight.replay.catalogue import catalogue
from hindflight.replay.experiment.place import Space, place
from hindflight.replay.scenario.model import parse_scenario

FOLDER = Path(__file__).resolve().parents[1] / "scenarios"
PACKET_BITS = 12_000
File = dict[str, Any]
Edit = Callable[[File], None]


def as_it_is(file: File) -> None:
    """Change nothing."""


def backward(file: File) -> None:
    """Let the data flow from the last node to the first."""
    file["path"].reverse()
    file["links"].reverse()


def loss(name: str, model: File | None) -> Edit:
    """Return what gives the link `name` another loss model, or none."""

    def edit(file: File) -> None:
        link = next(link for link in file["links"] if link["name"] == name)
        link.pop("loss", None)
        if model is not None:
            link["loss"] = model

    return edit


def delay(one_way_ms: float) -> Edit:
    """Return what gives every link to or from the satellite this delay."""

    def edit(file: File) -> None:
        for link in file["links"]:
            if link["delay"] == "125 ms":
                link["delay"] = f"{one_way_ms} ms"

    return edit


def proxy(**keys: str) -> Edit:
    """Return what overrides keys of the only proxy."""
    return lambda file: file["proxy"][0].update(keys)


def fixed(pkts: int) -> Edit:
    """Return what gives every connection a window of `pkts` packets that no loss decreases."""

    def edit(file: File) -> None:
        file["compare"]["variants"] = ["sack"]
        file["flow"].pop("initial_ssthresh", None)
        file["flow"]["fixed_window"] = f"{pkts} pkts"

    return edit


def variant(name: str) -> Edit:
    """Return what gives every connection another variant."""
    return lambda file: file["compare"].update(variants=[name])


def both(*edits: Edit) -> Edit:
    """Return what applies several changes."""

    def edit(file: File) -> None:
        for each in edits:
            each(file)

    return edit


def bits(ber: float) -> Edit:
    """Return what gives both links of onboard.toml independent bit errors."""
    model = {"model": "ber", "ber": ber} if ber else None
    return both(loss("up", model), loss("down", model))


def packets(per: float) -> Edit:
    """Return what gives the truck's link to the satellite independent losses of packets."""
    return loss("T-S", {"model": "bernoulli", "per": per} if per else None)


CASES: dict[str, tuple[str, int, tuple[tuple[str, Edit], ...]]] = {
    "haps": (
        "T",
        336,
        (
            ("as in the paper: W to G, T-S loses 0.1 %", as_it_is),
            ("no loss on T-S", packets(0)),
            ("T-S loses 0.01 %", packets(1e-4)),
            ("T-S loses 1 %", packets(1e-2)),
            ("no loss on W-T", loss("W-T", None)),
            ("no loss at all", both(loss("W-T", None), packets(0))),
            ("half the delay: pipe of 21 packets", delay(62.5)),
            ("twice the delay: pipe of 83 packets", delay(250)),
            ("no loss at all, twice the delay", both(loss("W-T", None), packets(0), delay(250))),
            ("all free memory is advertised", proxy(advertise="free")),
            ("G to W", backward),
            ("G to W, all free memory is advertised", both(backward, proxy(advertise="free"))),
            ("G to W, no loss at all", both(backward, loss("W-T", None), packets(0))),
            (
                "G to W, no loss at all, all free memory",
                both(backward, loss("W-T", None), packets(0), proxy(advertise="free")),
            ),
        ),
    ),
    "onboard": (
        "satellite",
        252,
        (
            ("as in the paper: bit error rate 1e-6", as_it_is),
            ("bit error rate 1e-7", bits(1e-7)),
            ("bit error rate 1e-8", bits(1e-8)),
            ("no bit errors", bits(0)),
            ("bit errors on the uplink only", loss("down", None)),
            ("bit errors on the downlink only", loss("up", None)),
            ("half the delay: pipe of 10 packets", delay(62.5)),
            ("no bit errors, half the delay", both(bits(0), delay(62.5))),
            ("any share of the cache onward", proxy(forward_window="unlimited")),
            ("all free memory is advertised", proxy(advertise="free")),
            ("both", proxy(forward_window="unlimited", advertise="free")),
            ("Westwood (ABSE)", variant("westwood-abse")),
            ("SACK recovery", variant("sack")),
            ("SACK with a fixed window of 63 packets, which no loss decreases", fixed(63)),
            ("the same without bit errors", both(fixed(63), bits(0))),
        ),
    ),
}


def main(names: list[str]) -> None:
    """Print a row for each case of the scenarios `names`, or of all."""
    known = tuple(variant.name for variant in catalogue())
    for name in names or CASES:
        node, cache, cases = CASES[name]
        text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
        print(f"| {name}.toml | knee, pkts | best goodput, kbit/s |\n|---|---|---|")
        for label, edit in cases:
            file = copy.deepcopy(tomllib.loads(text))
            edit(file)
            scenario = parse_scenario(file, f"{name}.toml", known)
            best = place(scenario, FOLDER, Space((node,), (), cache, 1)).best[0]
            print(f"| {label} | {best.knee_pkts} | {best.goodput_bps.mean / 1e3:.0f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
