"""Which kinds of file are read, and what other files look like."""

from __future__ import annotations

from pathlib import Path

from hindflight.toolkit.flight import FLIGHT_KINDS, flight_kind
from hindflight.toolkit.logs import KINDS, log_kind
from hindflight.toolkit.logs.octets import LogFile
from hindflight.toolkit.text import printable

CAPTURES = "captures: pcap, pcapng, snoop, ERF"
_MAGIC = (
    (b"PK\x03\x04", "a ZIP archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"PAR1", "Parquet"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x89HDF", "HDF5"),
    (b"\x89PNG", "a PNG picture"),
    (b"%PDF", "a PDF document"),
    (b"\x7fELF", "a program"),
    (b"\xff\xfe", "text in UTF-16; save it in UTF-8"),
    (b"\xfe\xff", "text in UTF-16; save it in UTF-8"),
    (b"tracing", "a binary trace of trace-cmd; `trace-cmd report` prints it as text"),
    (b"\x17\x08\x44tracing", "a binary trace of trace-cmd; `trace-cmd report` prints it as text"),
    (b"PERFILE2", "a binary trace of perf; `perf script` prints it as text"),
)
_SHOWN = 60


def kind_of(path: Path) -> str | None:
    """Return the kind of the kernel log or flight log in `path`; None if it is neither."""
    return log_kind(path) or flight_kind(path)


def label_of(kind: str) -> str:
    """Return what a kind that `kind_of` returns is called."""
    return KINDS[kind].label if kind in KINDS else FLIGHT_KINDS[kind].label


def kinds_read() -> str:
    """Return all kinds that are read, in one line."""
    logs, flights = (", ".join(kind.label for kind in kinds.values()) for kinds in (KINDS, FLIGHT_KINDS))
    return f"read are {CAPTURES}; kernel logs: {logs}; flight logs: {flights}; plain or compressed"


def refusal(path: Path, what: str) -> tuple[str, str | None]:
    """Return what to say of the file in `path`, of which the decoder says `what`: no capture it knows; and a hint."""
    head = LogFile(path).head()
    kind = kind_of(path)
    if kind is not None:
        hint = "`hindflight info` shows it; `hindflight ingest CAPTURE LOG -w WORKSPACE` joins it to its capture"
        return f"is not a capture but a log: {label_of(kind)}", hint
    return f"{what}; nor is it a log: it looks like {appearance(head)}", kinds_read()


def appearance(head: bytes) -> str:
    """Return what a file that begins with `head` looks like."""
    named = next((name for magic, name in _MAGIC if head.startswith(magic)), None)
    if named is not None:
        return named
    if not head.strip(b"\0"):
        return "an empty file" if not head else "octets that are all zero"
    if head[257:262] == b"ustar":
        return "a tar archive"
    text = head.decode("utf-8", "replace")
    control = sum((character < " " and character not in "\t\r\n") or character == "\ufffd" for character in text)
    if control > len(text) // 100:
        return f"binary data (first octets {head[:8].hex(' ')})"
    return _text(text)


def _is_table(text: str) -> bool:
    """Whether the first lines have as many commas, semicolons or tabs each."""
    lines = [line for line in text.splitlines()[:3] if line.strip()]
    return any(len({line.count(separator) for line in lines} | {0}) == 2 for separator in ",;\t" if len(lines) > 1)


def _text(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    shown = printable(line[:_SHOWN]) + ("…" if len(line) > _SHOWN else "")
    kind = "text"
    if line.startswith(("{", "[")):
        kind = "JSON of another kind"
    elif line.startswith("<"):
        kind = "XML or HTML"
    elif _is_table(text):
        kind = "CSV of another kind"
    return f"{kind} (first line: {shown})"
