"""Synthesis: generates a channel trace from any model, named or in a file, and writes it in batches.

See docs/channels/synth.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import Field

from hindflight.channels.intervals import Direction, State, merge, tables, truncate
from hindflight.channels.models import losses
from hindflight.channels.models.link_layer import LinkModel, LinkProtection
from hindflight.channels.models.parameters import LONGEST_NS, parse, read_toml
from hindflight.channels.models.state_sequences import chain_states
from hindflight.channels.trace import METADATA_KEY, Trace
from hindflight.toolkit.errors import ChannelError
from hindflight.toolkit.files import whole_file
from hindflight.toolkit.schema import arrow_schema
from hindflight.toolkit.seal import EMPTY_SEAL, PARQUET_KEY, seal_file
from hindflight.toolkit.units import TIME

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

PacketModel = losses.PacketLoss
"""Models per packet, without time: their traces have one row per packet."""

TimeModel = losses.TimeLoss | LinkModel
"""Models in continuous time: their traces have one row per state, or one per packet under link-layer protection."""

Model = PacketModel | LinkProtection | TimeModel
ANY_MODEL = Annotated[Model, Field(discriminator="model")]

MODEL_CLASSES = (*get_args(PacketModel), *get_args(LinkProtection), *get_args(TimeModel))
"""The classes of all models."""
MODELS: tuple[str, ...] = tuple(get_args(kind.model_fields["model"].annotation)[0] for kind in MODEL_CLASSES)
"""Names of all models."""

BATCH_PKTS = 262_144

MAX_PACKETS = 10**9
"""Maximum number of packets of a synthesis."""


@dataclass(slots=True)
class Tally:
    """Totals of a synthesis: rows, packets or time covered, and how much of it was lost."""

    rows: int = 0
    packets: int = 0
    lost_packets: int = 0
    span_ns: int = 0
    lost_ns: int = 0


@dataclass(frozen=True, slots=True)
class Extent:
    """Length of a synthesis: `span_ns` of a model in continuous time, `packets` of a model per packet.

    Raises ChannelError beyond `LONGEST_NS` and `MAX_PACKETS`.
    """

    span_ns: int = 60 * 10**9
    packets: int = 100_000
    size_bytes: int = 1500
    spacing_ns: int = 1_000_000

    def __post_init__(self) -> None:
        if self.span_ns > LONGEST_NS:
            longest = TIME.write(LONGEST_NS)
            raise ChannelError(f"a channel of {self.span_ns / 1e9:g} s is too long; at most {longest}")
        if self.packets > MAX_PACKETS:
            raise ChannelError(f"{self.packets} packets are too many; at most {MAX_PACKETS}")


def read_model(name: str, settings: dict[str, Any] | None = None) -> Model:
    """Return the model called `name`, or that of the TOML file `name`; `settings` override the file.

    Raises ChannelError with the file, the key and the allowed values.
    """
    path = Path(name)
    is_file = path.suffix == ".toml" or (path.exists() and name not in MODELS)
    data = read_toml(path) if is_file else {"model": name}
    folder = path.parent if is_file else Path()
    model: Model = parse(ANY_MODEL, {**data, **(settings or {})}, name if is_file else "model", folder)
    return model


def model_states(model: TimeModel, span_ns: int, seed: int, owner: int = 0) -> Iterator[State]:
    """Return the states of the link from 0 to `span_ns`."""
    if isinstance(model, losses.TimeLoss):
        return merge(truncate(chain_states(model.config(), seed, owner), span_ns))
    return model.states(span_ns, seed, owner)


def packet_tables(model: PacketModel | LinkProtection, seed: int, extent: Extent) -> Iterator[pa.Table]:
    """Return rows of kind packet: losses, and the delay added by link-layer protection."""
    import numpy as np

    if isinstance(model, LinkProtection):
        first = 0
        for outcomes in model.outcomes(
            extent.packets, seed, size_bytes=extent.size_bytes, spacing_ns=extent.spacing_ns
        ):
            yield _packet_rows(first, outcomes.lost, outcomes.added_ns, extent)
            first += len(outcomes.lost)
        return
    for first, lost in _lost(model, seed, extent):
        yield _packet_rows(first, lost, np.zeros(0, dtype=np.int64), extent)


def _lost(model: PacketModel, seed: int, extent: Extent) -> Iterator[tuple[int, np.ndarray[Any, np.dtype[np.bool_]]]]:
    import numpy as np
    import pyarrow as pa

    from hindflight.channels._native import LossStream

    stream = LossStream(json.dumps(model.config()), seed=seed)
    for first in range(0, extent.packets, BATCH_PKTS):
        count = min(BATCH_PKTS, extent.packets - first)
        lost = np.zeros(count, dtype=bool)
        hit = pa.table(stream.read(count, extent.size_bytes, extent.spacing_ns))["position"]
        lost[np.asarray(hit) - np.uint64(first)] = True
        yield first, lost


def _packet_rows(
    first: int,
    lost: np.ndarray[Any, np.dtype[np.bool_]],
    added_ns: np.ndarray[Any, np.dtype[np.int64]],
    extent: Extent,
) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    count = len(lost)
    positions = np.arange(first, first + count, dtype=np.uint64)
    causes = pa.DictionaryArray.from_arrays(pa.array(lost.astype(np.int8)), pa.array(["none", "channel"]))
    constant = {"kind": "packet", "hop": "link", "direction": "a2b"}
    columns: dict[str, Any] = {name: pa.repeat(pa.scalar(value), count) for name, value in constant.items()}
    columns |= {
        "position": positions,
        "t_ns": positions.astype(np.int64) * extent.spacing_ns,
        "size_bytes": np.full(count, extent.size_bytes, dtype=np.uint32),
        "lost": lost,
        "cause": causes,
        "known": np.ones(count, dtype=bool),
    }
    if len(added_ns):
        columns["added_ns"] = pa.array(added_ns, mask=lost)
    return _whole(columns, count)


def _whole(columns: dict[str, Any], rows: int) -> pa.Table:
    """Return a channel table with nulls in the columns that are not given."""
    import pyarrow as pa

    from hindflight.toolkit.schema import conform

    schema = arrow_schema("channel")
    for field in schema:
        if field.name not in columns:
            columns[field.name] = pa.nulls(rows, field.type)
    return conform("channel", pa.table(columns))


def synthesise_trace(
    model: Model, *, seed: int, extent: Extent = Extent(), directions: Sequence[Direction] = ("a2b",)
) -> Trace:
    """Generate a trace in memory, as `synthesise` writes it; by default one direction of it."""
    import pyarrow as pa

    source = {"model": model.model_dump_json(exclude_none=True), "seed": str(seed)}
    if isinstance(model, PacketModel | LinkProtection):
        return Trace(pa.concat_tables(list(packet_tables(model, seed, extent))), source=source)
    states = tables(model_states(model, extent.span_ns, seed), directions=directions)
    return Trace(pa.concat_tables(list(states)), source=source)


def write_tables(batches: Iterable[pa.Table], path: Path, source: dict[str, str], *, force: bool = True) -> Tally:
    """Write batches of a channel table to `path`, completely or not at all, and return their totals.

    Without `force`, raises HindflightError if the file must not be replaced (toolkit/files.py).
    """
    import pyarrow.parquet as pq

    note = {"estimates": [], "unknowns": [], "counts": {}, "source": source}
    schema = arrow_schema("channel")
    added = {METADATA_KEY: json.dumps(note).encode(), PARQUET_KEY: EMPTY_SEAL.encode()}
    schema = schema.with_metadata({**(schema.metadata or {}), **added})
    tally = Tally()
    with whole_file(path, force=force) as temporary:
        with (
            temporary.open("wb") as file,
            pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer,
        ):
            for batch in batches:
                writer.write_table(batch.replace_schema_metadata(schema.metadata))
                _count(tally, batch)
        seal_file(temporary)
    return tally


def _count(tally: Tally, batch: pa.Table) -> None:
    import numpy as np

    lost = np.asarray(batch["lost"])
    tally.rows += len(batch)
    if batch["end_ns"].null_count:
        tally.packets += len(batch)
        tally.lost_packets += int(lost.sum())
        return
    lengths = np.asarray(batch["end_ns"]) - np.asarray(batch["t_ns"])
    ways = len(batch["direction"].unique())
    tally.span_ns += int(lengths.sum()) // ways
    tally.lost_ns += int(lengths[lost].sum()) // ways


def synthesise(
    model: Model,
    path: Path,
    *,
    seed: int,
    extent: Extent = Extent(),
    directions: Sequence[Direction] = ("a2b", "b2a"),
    force: bool = True,
) -> Tally:
    """Generate a trace of `model` and write it to `path`, see `write_tables`. Equal seeds give equal files."""
    source = {"model": model.model_dump_json(exclude_none=True), "seed": str(seed)}
    if isinstance(model, PacketModel | LinkProtection):
        return write_tables(packet_tables(model, seed, extent), path, {**source, "clock": "packets"}, force=force)
    states = model_states(model, extent.span_ns, seed)
    return write_tables(tables(states, directions=directions), path, {**source, "clock": "time"}, force=force)
