"""Channel traces in the formats of other tools: read, write, and state what a format cannot represent.

Each format has a module; this one lists them and detects the format of a file. See docs/channels/interop.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hindflight.channels.formats import csv_table, link_log, mahimahi, netem, ns, theaterq
from hindflight.channels.formats.text import Source, read_source
from hindflight.channels.trace import Trace, check_intervals, read_trace, write_trace
from hindflight.toolkit.errors import ChannelError, did_you_mean
from hindflight.toolkit.files import plain_os_errors, write_whole
from hindflight.toolkit.seal import SEAL_NOTE, sealed

__all__ = ["FORMATS", "Format", "check_parquet_name", "read_channel", "write_channel"]

PARQUET = b"PAR1"
"""First bytes of a Parquet file."""


@dataclass(frozen=True, slots=True)
class Format:
    """A file format. `read` is None for a format that is only written, `write` for one that is only read.

    `write` returns the text and one sentence per property of the trace that the text omits.
    """

    name: str
    what: str
    suffixes: tuple[str, ...]
    read: Callable[[Source], Trace] | None
    write: Callable[[Trace, str], tuple[str, list[str]]] | None
    comment: str = ""
    """Start of a comment; a format without comments carries no digest (toolkit/seal.py)."""


FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        Format("parquet", "the channel table", (".parquet",), None, None),
        Format("csv", "the channel table as text", (".csv",), csv_table.read, csv_table.write),
        Format("mahimahi", "delivery opportunities", (".up", ".down", ".mahi", ".pps"), mahimahi.read, mahimahi.write),
        Format("theaterq", "TheaterQ, simple or extended", (".theaterq", ".tq"), theaterq.read, theaterq.write),
        Format("netem", "a tc netem command line", (".netem", ".sh"), netem.read, netem.write, "#"),
        Format("ns2", "ns-2 ErrorModel/List", (".tcl",), ns.read_ns2, ns.write_ns2, "#"),
        Format("ns3", "ns-3 ReceiveListErrorModel", (".cc", ".ns3"), ns.read_ns3, ns.write_ns3, "//"),
        Format("link_log", "log of the link emulator of the test recordings", (), link_log.read, None),
    )
}  # fmt: skip
"""All formats by name."""


def read_channel(path: Path | str, form: str | None = None) -> Trace:
    """Read a channel trace. Without `form`, the name and the first bytes of the file determine the format.

    Raises ChannelError, with the line or record, if the file is not valid.
    """
    path = Path(path)
    if _is_parquet(path) if form is None else _format(form).name == "parquet":
        return read_trace(path)
    source = read_source(path)
    chosen = _format(form) if form is not None else _detect(source)
    if chosen.read is None:
        raise ChannelError(f"{path}: {chosen.name} can only be written")
    trace = chosen.read(source)
    check_intervals(trace.intervals(), str(path))
    return trace


def write_channel(trace: Trace, path: Path | str, form: str | None = None, *, force: bool = True) -> list[str]:
    """Write `trace` in the format `form`, or else in that of the file name; return what the file omits.

    Raises ChannelError if the format can represent nothing of the trace. Without `force`, raises HindflightError if the
    file must not be replaced (toolkit/files.py).
    """
    path = Path(path)
    chosen = _format(form) if form is not None else _by_suffix(path)
    if chosen is None:
        known = ", ".join(suffix for each in FORMATS.values() for suffix in each.suffixes)
        raise ChannelError(f"{path}: unknown suffix; known: {known}", f"or name the format: {', '.join(FORMATS)}")
    if chosen.name == "parquet":
        write_trace(trace, path, force=force)
        return []
    if chosen.write is None:
        raise ChannelError(f"{path}: {chosen.name} can only be read")
    text, omissions = chosen.write(trace, str(path))
    if chosen.comment:
        text = sealed(f"{text}{chosen.comment} {SEAL_NOTE}\n".encode()).decode()
    write_whole(path, text, force=force)
    return omissions


def check_parquet_name(path: Path) -> None:
    """Raise ChannelError if the file name of a Parquet output has the suffix of another format."""
    named = _by_suffix(path)
    if named is not None and named.name != "parquet":
        raise ChannelError(
            f"{path}: the suffix is that of {named.name}, but this command writes Parquet",
            "give it the suffix .parquet; `hindflight channel convert` writes the other formats",
        )


def _is_parquet(path: Path) -> bool:
    """Return whether the name or the first bytes of a file are those of Parquet."""
    if path.suffix == ".parquet" or not path.is_file():
        return path.suffix == ".parquet"
    with plain_os_errors(f"reading {path}"), path.open("rb") as file:
        return file.read(len(PARQUET)) == PARQUET


def _format(name: str) -> Format:
    if name in FORMATS:
        return FORMATS[name]
    guess = did_you_mean(name, FORMATS, lead="; ")
    raise ChannelError(f"unknown format {name!r}{guess}", f"allowed: {', '.join(FORMATS)}")


def _by_suffix(path: Path) -> Format | None:
    suffix = path.with_suffix("").suffix if path.suffix in {".gz", ".xz"} else path.suffix
    return next((form for form in FORMATS.values() if suffix in form.suffixes), None)


def _detect(source: Source) -> Format:
    """Return the format of a text file by its first line, or else by its name."""
    first = source.first_line()
    if "t_arr_ns" in first and "fate" in first:
        return FORMATS["link_log"]
    if "netem" in first.split():
        return FORMATS["netem"]
    named = _by_suffix(source.path)
    words = first.replace(",", " ").split()
    if words and all(word.isdigit() for word in words):
        if len(first.split(",")) in {5, 9}:
            return FORMATS["theaterq"]
        if len(words) == 1 and named in (None, FORMATS["mahimahi"]):
            return FORMATS["mahimahi"]
    if named is None:
        raise ChannelError(
            f"{source.path}: the format is not known from the suffix or the first line",
            f"name the format: {', '.join(FORMATS)}",
        )
    return named
