"""`hindflight channel synth`: a channel from a model, written as a trace that replays can use."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolkit.cli.output import AsJson, print_json, say

if TYPE_CHECKING:
    from channels.synth import Model


def synth(
    model: Annotated[str, typer.Argument(help="Name of a model, or a TOML file with its parameters.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Write the trace here (Parquet).")],
    settings: Annotated[
        list[str] | None, typer.Option("-p", "--param", help="A parameter as KEY=VALUE; may stand several times.")
    ] = None,
    duration: Annotated[str, typer.Option(help="How long, for models in time.")] = "60 s",
    packets: Annotated[int, typer.Option(min=1, help="How many, for models that know packets only.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds give equal channels on every machine.")] = 1,
    skyline: Annotated[
        Path | None, typer.Option(help="Write the buildings of a street here too (CSV); a street reads them back.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Synthesise a channel from a model: bursts, a street canyon, UAV links, handovers (docs/channels)."""
    from channels.synth import Extent, read_model, synthesise

    chosen = read_model(model, dict(_setting(text) for text in settings or ()))
    if skyline is not None:
        _write_skyline(chosen, skyline, _span_ns(duration), seed)
    tally = synthesise(chosen, out, seed=seed, extent=Extent(_span_ns(duration), packets))
    of, lost = (tally.packets, tally.lost_packets) if tally.packets else (tally.span_ns, tally.lost_ns)
    if as_json:
        clock = "packets" if tally.packets else "time"
        print_json({"model": chosen.model, "seed": seed, "clock": clock, "rows": tally.rows, "lost_share": lost / of})
        return
    what = f"{tally.packets} packets" if tally.packets else f"{tally.span_ns / 1e9:g} s"
    print(f"{chosen.model}: {what} in {tally.rows} rows; the channel loses all in {100 * lost / of:.3g} % of them")
    say(f"wrote {out}")


def _write_skyline(model: Model, path: Path, span_ns: int, seed: int) -> None:
    from channels.skyline import write_skyline
    from channels.street import Street
    from toolkit.errors import ChannelError

    if not isinstance(model, Street):
        raise ChannelError(f"--skyline: model {model.model!r} has no buildings; only a street has")
    write_skyline(model.drawn(span_ns, seed), path)


def _setting(text: str) -> tuple[str, Any]:
    from toolkit.errors import ChannelError

    key, equals, value = text.partition("=")
    if not equals:
        raise ChannelError(f"--param {text}: write it as KEY=VALUE, as in -p per=0.01")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def _span_ns(text: str) -> int:
    from toolkit.errors import ChannelError
    from toolkit.units import TIME

    try:
        span = round(TIME.parse(text))
    except ValueError as error:
        raise ChannelError(f"--duration: {error}") from None
    if span < 1_000_000:
        raise ChannelError("--duration: give at least 1 ms")
    return span
