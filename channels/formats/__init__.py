"""Channel traces in the formats of other tools: read what they hold, write what they can hold, say what they cannot.

Each format has its own module; here is the list of them and how one is told from a file. Read docs/channels/interop.md.
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
"""With this a Parquet file begins."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format: how it is read (None: only written), how it is written (None: only read).

    `write` gives the text and a sentence for each thing that the format cannot hold.
    """

    name: str
    what: str
    suffixes: tuple[str, ...]
    read: Callable[[Source], Trace] | None
    write: Callable[[Trace, str], tuple[str, list[str]]] | None
    comment: str = ""
    """What begins a comment; a format that has none carries no digest (toolkit/seal.py)."""


FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        Format("parquet", "our own table, whole", (".parquet",), None, None),
        Format("csv", "our own table as text", (".csv",), csv_table.read, csv_table.write),
        Format("mahimahi", "chances to deliver", (".up", ".down", ".mahi", ".pps"), mahimahi.read, mahimahi.write),
        Format("theaterq", "TheaterQ, simple or extended", (".theaterq", ".tq"), theaterq.read, theaterq.write),
        Format("netem", "a tc netem command line", (".netem", ".sh"), netem.read, netem.write, "#"),
        Format("ns2", "ns-2 ErrorModel/List", (".tcl",), ns.read_ns2, ns.write_ns2, "#"),
        Format("ns3", "ns-3 ReceiveListErrorModel", (".cc", ".ns3"), ns.read_ns3, ns.write_ns3, "//"),
        Format("link_log", "log of the link emulator of our recordings", (), link_log.read, None),
    )
}  # fmt: skip
"""Every format by name."""


def read_channel(path: Path | str, form: str | None = None) -> Trace:
    """Read a channel in any format; without `form` the file's name and how it begins tell which.

    ChannelError: what is wrong with the file, with the line or record.
    """
    path = Path(path)
    if _is_parquet(path) if form is None else _format(form, "--from").name == "parquet":
        return read_trace(path)
    source = read_source(path)
    chosen = _format(form, "--from") if form is not None else _told(source)
    if chosen.read is None:
        raise ChannelError(f"{path}: {chosen.name} can only be written")
    trace = chosen.read(source)
    check_intervals(trace.intervals(), str(path))
    return trace


def write_channel(trace: Trace, path: Path | str, form: str | None = None, *, force: bool = True) -> list[str]:
    """Write `trace` in a format, told by the name of the file unless `form` is given; say what is not in the file.

    ChannelError where the trace has nothing that the format could hold. Without `force` HindflightError if the file may
    not be replaced (toolkit/files.py).
    """
    path = Path(path)
    chosen = _format(form, "--to") if form is not None else _by_suffix(path)
    if chosen is None:
        known = ", ".join(suffix for each in FORMATS.values() for suffix in each.suffixes)
        raise ChannelError(f"{path}: its name does not tell the format; known: {known}", "or give --to FORMAT")
    if chosen.name == "parquet":
        write_trace(trace, path, force=force)
        return []
    if chosen.write is None:
        raise ChannelError(f"{path}: {chosen.name} can only be read")
    text, lacking = chosen.write(trace, str(path))
    if chosen.comment:
        text = sealed(f"{text}{chosen.comment} {SEAL_NOTE}\n".encode()).decode()
    write_whole(path, text, force=force)
    return lacking


def check_parquet_name(path: Path) -> None:
    """ChannelError if the name of a file that will be Parquet is that of another format."""
    named = _by_suffix(path)
    if named is not None and named.name != "parquet":
        raise ChannelError(
            f"{path}: its name says {named.name}, and Parquet is what is written here",
            "name it .parquet; `hindflight channel convert` then writes the other formats",
        )


def _is_parquet(path: Path) -> bool:
    """Whether the name says so, or the file begins so: it may have any name."""
    if path.suffix == ".parquet" or not path.is_file():
        return path.suffix == ".parquet"
    with plain_os_errors(f"reading {path}"), path.open("rb") as file:
        return file.read(len(PARQUET)) == PARQUET


def _format(name: str, option: str) -> Format:
    if name in FORMATS:
        return FORMATS[name]
    guess = did_you_mean(name, FORMATS, lead="; ")
    raise ChannelError(f"{option}: unknown format {name!r}{guess}", f"allowed: {', '.join(FORMATS)}")


def _by_suffix(path: Path) -> Format | None:
    suffix = path.with_suffix("").suffix if path.suffix in {".gz", ".xz"} else path.suffix
    return next((form for form in FORMATS.values() if suffix in form.suffixes), None)


def _told(source: Source) -> Format:
    """The format of a text, by its first line, then by its name."""
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
            f"{source.path}: neither its name nor its first line tells the format", f"give --from: {', '.join(FORMATS)}"
        )
    return named
