"""`hindflight channel synth`: a channel from a model, written as a trace that replays can use."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hindflight.cli.output import AsJson, Force, echo, print_json, say

if TYPE_CHECKING:
    from hindflight.channels.models.synth import Model


Settings = Annotated[
    list[str] | None, typer.Option("-p", "--param", help="A model parameter as KEY=VALUE; repeatable.")
]
Span = Annotated[str, typer.Option("--duration", help="Duration, for models in time.")]
Packets = Annotated[int, typer.Option("--packets", min=1, help="Number of packets, for models per packet.")]
Seed = Annotated[
    int,
    typer.Option("--seed", min=0, max=2**64 - 1, help="Random seed; a seed gives the same channel on every machine."),
]


def synth(
    model: Annotated[str, typer.Argument(help="Name of a model, or a TOML file with its parameters.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Write the trace here (Parquet).")],
    settings: Settings = None,
    duration: Span = "60 s",
    packets: Packets = 100_000,
    seed: Seed = 1,
    skyline: Annotated[Path | None, typer.Option(help="Also write the buildings of a street to this CSV file.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Generate a channel from a model. Loss bursts, street canyons, UAV links, handovers: see docs/channels."""
    from hindflight.channels.formats import check_parquet_name
    from hindflight.channels.models.parameters import input_files
    from hindflight.channels.models.synth import Extent, read_model, synthesise
    from hindflight.toolkit.files import check_outputs

    check_parquet_name(out)
    chosen = read_model(model, dict(setting(text) for text in settings or ()))
    inputs = [Path(model), *input_files(chosen)]
    check_outputs([out], inputs, force=force)
    check_outputs([out, skyline], inputs, force=True)
    extent = Extent(span_ns(duration), packets)
    if skyline is not None:
        _write_skyline(chosen, skyline, extent.span_ns, seed, force=force)
    tally = synthesise(chosen, out, seed=seed, extent=extent, force=force)
    of, lost = (tally.packets, tally.lost_packets) if tally.packets else (tally.span_ns, tally.lost_ns)
    if as_json:
        clock = "packets" if tally.packets else "time"
        print_json({"model": chosen.model, "seed": seed, "clock": clock, "rows": tally.rows, "lost_share": lost / of})
        return
    share = f"{100 * lost / of:.3g} %"
    if tally.packets:
        echo(f"{chosen.model}: {tally.packets} packets, {share} of them lost")
    else:
        echo(f"{chosen.model}: {tally.span_ns / 1e9:g} s in {tally.rows} rows; nothing passes in {share} of the time")
    say(f"wrote {out}")


def _write_skyline(model: Model, path: Path, span_ns: int, seed: int, *, force: bool) -> None:
    from hindflight.channels.models.skyline import write_skyline
    from hindflight.channels.models.street import Street
    from hindflight.toolkit.errors import ChannelError

    if not isinstance(model, Street):
        raise ChannelError(f"--skyline: model {model.model!r} has no buildings; only a street has")
    write_skyline(model.skyline_for(span_ns, seed), path, force=force)


def setting(text: str) -> tuple[str, Any]:
    """Return a parameter of a model from KEY=VALUE; ChannelError without the equals sign."""
    from hindflight.toolkit.errors import ChannelError

    key, equals, value = text.partition("=")
    if not equals:
        raise ChannelError(f"--param {text}: write it as KEY=VALUE, as in -p per=0.01")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def span_ns(text: str) -> int:
    """Return `--duration` in ns; ChannelError if it is not a time or out of range."""
    from hindflight.channels.models.parameters import LONGEST_NS
    from hindflight.toolkit.errors import ChannelError
    from hindflight.toolkit.units import TIME

    try:
        span = round(TIME.parse(text))
    except ValueError as error:
        raise ChannelError(f"--duration: {error}") from None
    if span < 1_000_000:
        raise ChannelError("--duration: give at least 1 ms")
    if span > LONGEST_NS:
        raise ChannelError(f"--duration: {text!r} is too long; at most {TIME.write(LONGEST_NS)}")
    return span
