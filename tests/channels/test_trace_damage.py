"""Damaged channel traces: each is refused in one line or reads as it was written."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hindflight.channels.fitting.statistics import statistics
from hindflight.channels.formats import FORMATS, read_channel, write_channel
from hindflight.channels.intervals import State, read_states, tables
from hindflight.channels.models.synth import Extent, read_model, synthesise_trace
from hindflight.channels.trace import METADATA_KEY, Trace, read_trace, write_trace
from hindflight.toolkit.errors import ChannelError

MS = 1_000_000


def traces() -> dict[str, Trace]:
    model = read_model("gilbert_elliott", {"mean_loss": 0.1, "mean_burst": 3.0})
    link = [State(0, 9 * MS, 1e6, 5 * MS), State(9 * MS, 12 * MS, outage=True), State(12 * MS, 30 * MS, 2e6, per=0.1)]
    return {
        "packets": synthesise_trace(model, seed=1, extent=Extent(packets=60)),
        "states": Trace(pa.concat_tables(tables(link))),
    }


@pytest.fixture(scope="module", params=["packets", "states"])
def sound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, bytes]:
    trace = traces()[request.param]
    path = tmp_path_factory.mktemp("sound") / "a.parquet"
    write_trace(trace, path)
    return trace, path.read_bytes()


def error_of(path: Path) -> str | None:
    """What is said of a file; None if it is read. Anything but a ChannelError of one line fails."""
    try:
        read_trace(path)
    except ChannelError as error:
        said = error
    else:
        return None
    assert str(said).isprintable()
    assert said.exit_code == 2
    return str(said)


def mutations(octets: bytes) -> Iterator[bytes]:
    """Truncated, with bits turned, octets set, blanked, left out and put in; half of the places are in the footer."""
    rng = random.Random(20261)
    footer = len(octets) - 8 - int.from_bytes(octets[-8:-4], "little")
    yield from (octets[:length] for length in range(0, len(octets), 97))
    for place in range(0, len(octets), 61):
        yield octets[:place] + bytes([octets[place] ^ 1 << rng.randrange(8)]) + octets[place + 1 :]
    for number in range(400):
        place = rng.randrange(footer if number % 2 else 0, len(octets))
        length = rng.randint(1, 16)
        other = rng.choice([bytes(length), rng.randbytes(length), b""])
        yield octets[:place] + other + octets[place + rng.choice([0, length]) :]


def test_a_damaged_file_is_refused_or_reads_as_it_was(sound: tuple[Trace, bytes], tmp_path: Path) -> None:
    trace, octets = sound
    path = tmp_path / "m.parquet"
    refused = 0
    for damaged in mutations(octets):
        path.write_bytes(damaged)
        if error_of(path) is not None:
            refused += 1
        else:
            # What passes was of no effect: the pages have checksums.
            assert read_trace(path).channel.equals(trace.channel)
    assert refused > 500


def changed(column: str, values: Callable[[list[Any]], list[Any]], kind: pa.DataType | None = None) -> Any:
    def change(table: pa.Table) -> pa.Table:
        field = table.schema.field(column)
        plain = pa.string() if pa.types.is_dictionary(field.type) else field.type
        array = pa.array(values(table[column].to_pylist()), kind or plain)
        return table.set_column(table.column_names.index(column), pa.field(column, array.type), array)

    return change


def nothing(values: list[Any]) -> list[Any]:
    return [None] * len(values)


def first(value: object) -> Callable[[list[Any]], list[Any]]:
    return lambda values: [value, *values[1:]]


@pytest.mark.parametrize(
    ("which", "change", "says"),
    [
        ("packets", changed("t_ns", nothing), "channel.t_ns has 60 nulls"),
        ("packets", changed("lost", nothing), "channel.lost has 60 nulls"),
        ("packets", changed("kind", nothing), "channel.kind has 60 nulls"),
        ("states", changed("known", nothing), "channel.known has 6 nulls"),
        ("states", changed("end_ns", nothing), "an interval lacks end_ns"),
        ("packets", changed("lost", lambda values: ["no"] * len(values), pa.string()), "is not a channel table"),
        ("packets", changed("t_ns", lambda values: [b"x"] * len(values), pa.binary()), "is not a channel table"),
        ("packets", changed("t_ns", lambda values: [[1]] * len(values), pa.list_(pa.int64())), "is not a channel tab"),
        ("packets", changed("t_ns", first(float("nan")), pa.float64()), "is not a channel table"),
        ("states", changed("end_ns", first(float("inf")), pa.float64()), "is not a channel table"),
        ("states", changed("rate_bps", first(float("nan"))), "rate_bps must be finite and not negative"),
        ("states", changed("per", first(float("inf"))), "per must be finite and not negative"),
        ("packets", changed("cause", first("weather")), "cause = 'weather' is not one of"),
        ("packets", changed("t_ns", lambda values: values[::-1]), "is not sorted by time: packet row 1"),
        ("packets", changed("position", lambda values: values[::-1]), "positions of packets must count"),
        ("states", changed("t_ns", first(20 * MS)), "an interval ends before it starts"),
        ("states", changed("t_ns", first(-1)), "t_ns must not be negative"),
        ("packets", lambda table: table.drop_columns(["lost"]), "lacks column lost"),
        ("packets", lambda table: table.append_column("lost", table["lost"]), "exists 2 times in schema"),
        ("packets", lambda table: table.slice(0, 0), "the channel table is empty"),
        ("packets", lambda _: pa.table({}), "is not a channel table"),
    ],
)
def test_a_table_that_no_replay_could_use_says_why(tmp_path: Path, which: str, change: Any, says: str) -> None:
    path = tmp_path / "m.parquet"
    pq.write_table(change(traces()[which].channel), path)
    assert says in (error_of(path) or "it was read")


ESTIMATE = b'{"estimates": [{"name": "x", "value": %s, "low": 1, "high": null, "unit": "", "known": true, "how": ""}]}'

STRETCH = b'{"stretches": [{"start_ns": %s, "end_ns": %s, "packets": 1, "estimates": %s}]}'


@pytest.mark.parametrize(
    "note",
    [
        b"[" * 100_000,
        b"null",
        b'{"estimates": [{"name": "rate_bps"}]}',
        b'{"unknowns": [1]}',
        b'{"counts": {"channel": "many"}}',
        b'{"source": {"flow": 3}}',
        ESTIMATE % b'"4"',
        ESTIMATE % b"NaN",
        STRETCH % (b"Infinity", b"9", b"[]"),
        STRETCH % (b"4", b"3", b"[]"),
        STRETCH % (b"4", b"9.5", b"[]"),
        STRETCH % (b"4", b"9", b"[]"),
        b'{"bursts_or_outages": [[3, 2]]}',
        b'{"bursts_or_outages": [[-1, 2]]}',
        b'{"bursts_or_outages": [[1, 2.5]]}',
        b'{"bursts_or_outages": [3]}',
        b"\xff\xfe",
    ],
)
def test_damaged_metadata_are_one_line(tmp_path: Path, note: bytes) -> None:
    path = tmp_path / "m.parquet"
    channel = traces()["packets"].channel
    pq.write_table(channel.replace_schema_metadata({**(channel.schema.metadata or {}), METADATA_KEY: note}), path)
    assert "m.parquet: its metadata cannot be read (" in (error_of(path) or "it was read")


def test_names_of_hops_break_no_line(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    pq.write_table(changed("hop", first("a\nb"))(traces()["states"].channel), path)
    trace = read_channel(path)
    assert statistics(trace, "m")
    said: list[str] = []
    with pytest.raises(ChannelError, match=r"several hops \('a\\nb', link\)"):
        read_states(trace.intervals(), "a2b", "m")
    for name in [name for name, form in FORMATS.items() if form.write is not None]:
        try:
            write_channel(trace, tmp_path / "o", name)
        except ChannelError as error:
            said.append(str(error))
    assert all("\n" not in text for text in said)
