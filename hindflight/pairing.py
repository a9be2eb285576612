"""Pairs the captures of a path in a workspace: each with the next one. toolkit/pairing does the work of two.

Read docs/pairs.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.files import note_content

if TYPE_CHECKING:
    from hindflight.toolkit.ingest import Ingested
    from hindflight.toolkit.pairing.pair import Paired
    from hindflight.toolkit.source import Tables
    from hindflight.toolkit.workspace import Workspace


@dataclass(frozen=True, slots=True)
class PairLine:
    """What the captures of two neighbouring places say together: a line for people and a document."""

    text: str
    document: dict[str, Any]


def pair_inputs(workspace: Workspace, inputs: Sequence[Ingested], asymmetry: str, command: str) -> list[PairLine]:
    """Pair each capture with the next one on the path, into `pairs` and `clocks`, in place of earlier ones.

    `asymmetry` is a time with its unit, perhaps with a minus sign, or "". CaptureError: two captures have no packet in
    common. HindflightError: `asymmetry` is not a time.
    """
    from itertools import pairwise

    from hindflight.toolkit.pairing.pair import pair_captures

    asymmetry_ns = _asymmetry_ns(asymmetry)
    found = [
        (one, other, pair_captures(workspace, one.input_id, other.input_id, asymmetry_ns))
        for one, other in pairwise(inputs)
    ]
    with workspace.transaction(command) as transaction:
        for name in ("pairs", "clocks"):
            transaction.drop(name)
        for _, _, paired in found:
            transaction.write("pairs", paired.pairs)
            transaction.write("clocks", paired.clocks)
    return [_pair_line(one.path.name, other.path.name, paired) for one, other, paired in found]


def check_places(paths: Sequence[Path]) -> None:
    """HindflightError unless at least two of the files are captures, all different; called before they are read."""
    from hindflight.toolkit.recognition import kind_of

    captures = [path for path in paths if not path.is_file() or kind_of(path) is None]
    seen: dict[str, Path] = {}
    for path in captures:
        twin = note_content(path, seen) if path.is_file() else None
        if twin is not None:
            raise HindflightError(
                f"{twin} and {path} have the same content", "give the captures of two places, or leave out --pair"
            )
    if len(captures) < 2:
        raise HindflightError("--pair needs the captures of two places", "as in ingest SENDER RECEIVER --pair")


def _asymmetry_ns(text: str) -> int | None:
    from hindflight.toolkit.units import TIME

    if not text:
        return None
    try:
        size = round(TIME.parse(text.strip().removeprefix("-")))
    except ValueError as error:
        raise HindflightError(f"--asymmetry: {error}") from None
    return -size if text.strip().startswith("-") else size


def _pair_line(name: str, other: str, paired: Paired) -> PairLine:
    import pyarrow.compute as pc

    fates = {row["values"]: row["counts"] for row in pc.value_counts(paired.pairs["fate"].cast("string")).to_pylist()}
    document: dict[str, Any] = {"first": name, "other": other, "connections": paired.connections, "packets": fates}
    counts = ", ".join(f"{count} {fate.replace('_', ' ')}" for fate, count in fates.items())
    if paired.clock is None:
        return PairLine(f"{name} and {other}: {counts}; clocks not compared: packets of one direction only", document)
    clock = paired.clock
    (row,) = paired.clocks.to_pylist()
    delays = pc.quantile(paired.pairs["delay_ns"], [0.0, 0.5]).to_pylist()
    within_ms = (clock.offset_high_ns - clock.offset_low_ns) / 2e6
    drift = "drift not seen" if clock.drift_error_ppm is None else f"drift {clock.drift_ppm:+.2f} ppm"
    text = (
        f"{name} and {other}: {counts}; clock {clock.offset_ns / 1e9:+.6f} s (within {within_ms:.3f} ms), {drift}; "
        f"one-way delay at least {delays[0] / 1e6:.3f} ms, median {delays[1] / 1e6:.3f} ms"
    )
    return PairLine(text, document | {"clock": row})


def pair_files(captures: Sequence[Path], asymmetry: str) -> Tables:
    """Read captures of the same connections at several places, in order from the data sender, and pair them.

    The tables last as long as the object; errors as those of `pair_inputs`, and CaptureError.
    """
    from hindflight.toolkit.ingest import Ingest
    from hindflight.toolkit.source import temporary_tables

    check_places(captures)
    tables = temporary_tables()
    try:
        read = Ingest(tables.workspace, "pair")(captures)
        pair_inputs(tables.workspace, [one for one in read if one.kind == "capture"], asymmetry, "pair")
    except BaseException:
        tables.close()
        raise
    return tables
