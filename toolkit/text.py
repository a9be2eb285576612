"""Text of others (names of files, scenarios, columns) made safe for a terminal, a CSV cell, a shell and UTF-8.

Imports nothing of ours.
"""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from pathlib import PurePath
from urllib.parse import quote_from_bytes, unquote_to_bytes

_JOINERS = "\u200c\u200d"
"""Format characters that are kept: scripts and emoji need them."""

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

_UNUSUAL = re.compile(r"[^ -~]")
"""Every character that is not printable ASCII."""

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")

_URI = "file:"


def printable(text: str, keep: str = "") -> str:
    """Return `text` without characters that a terminal or a browser would act on: they become \\n, \\x1b, \\u202e.

    These are control characters, line separators, format characters (the order of bidirectional text among them) and
    octets of a name that are not UTF-8. The characters in `keep` stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNUSUAL.sub(lambda found: c if (c := found[0]) in keep or not _acts(c) else _escaped(c), text)


def _acts(character: str) -> bool:
    return character not in _JOINERS and unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _escaped(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # an octet that is not UTF-8, as os.fsdecode represents it
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escape_json(document: str) -> str:
    """Return a JSON document with every character escaped that `printable` would replace; its meaning stays."""
    return _UNUSUAL.sub(lambda found: _json_escape(c) if (c := found[0]) != "\n" and _acts(c) else c, document)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def csv_cell(text: str) -> str:
    """Return `text` for a cell of a CSV file: with an apostrophe in front where a spreadsheet would see a formula.

    A formula begins with = + - @, a tab or a carriage return; a number does not. `from_csv_cell` is the inverse.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def from_csv_cell(cell: str) -> str:
    """Return the text that `csv_cell` made `cell` of."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def name_to_text(name: PurePath | str) -> str:
    """Return a file's name or path as text that any file can hold: as it is where it is UTF-8, else as a URI.

    The URI is that of RFC 8089, octets percent-encoded. Deviation: a relative name has one too, `file:caf%E9.pcap`.
    """
    text = str(name)
    try:
        text.encode()
    except UnicodeEncodeError:
        pass
    else:
        if not text.startswith(_URI):
            return text
    root = "//" if text.startswith("/") else ""
    return f"{_URI}{root}{quote_from_bytes(os.fsencode(text))}"


def name_from_text(text: str) -> str:
    """Return the name or path that `name_to_text` wrote; also that of a file URI that a person wrote.

    ValueError: the URI names another host, or an octet 0.
    """
    if not text.startswith(_URI):
        return text
    rest = text.removeprefix(_URI)
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise ValueError(f"{text!r} names a file on the host {host}")
        rest = slash + path
    octets = unquote_to_bytes(rest)
    if b"\0" in octets:
        raise ValueError(f"{text!r} contains an octet 0, which no file name has")
    return os.fsdecode(octets)


def shell_line(words: list[str]) -> str:
    """Return the command line of `words` for a shell, in printable characters."""
    return " ".join(map(_shell_word, words))


def _shell_word(word: str) -> str:
    if not any(map(_acts, word)):
        return shlex.quote(word)
    # POSIX.1-2024, 2.2.4: $'…' with escapes for octets.
    quoted = []
    for character in word:
        if character in "\\'":
            quoted.append(f"\\{character}")
        elif _acts(character):
            quoted.extend(f"\\{octet:03o}" for octet in os.fsencode(character))
        else:
            quoted.append(character)
    return f"$'{''.join(quoted)}'"


def endpoint(address: str, port: int) -> str:
    """Return one end of a connection as text, an IPv6 address in brackets (RFC 5952 §6)."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
