"""Text of others: safe to show, safe in a spreadsheet, and names of files that come back octet by octet."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hindflight.toolkit.text import (
    csv_cell,
    escape_json,
    from_csv_cell,
    name_from_text,
    name_to_text,
    printable,
    shell_line,
)

OCTETS = st.binary(min_size=1, max_size=40).filter(lambda octets: b"\0" not in octets)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [red] é 😀", "plain [red] é 😀"),
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("\x1b[31m\x07\x7f", r"\x1b[31m\x07\x7f"),
        ("\x9b31m", r"\x9b31m"),
        ("a\u202eb\u2028", r"a\u202eb\u2028"),
        (os.fsdecode(b"caf\xe9"), r"caf\xe9"),
        ("\ud83d", r"\ud83d"),
        ("\U000e0001", r"\U000e0001"),
        ("👩\u200d🚀", "👩\u200d🚀"),
    ],
)
def test_what_a_terminal_would_act_on_is_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable("a\n\x1b", keep="\n") == "a\n\\x1b"


@given(st.text())
def test_what_is_shown_can_be_encoded_and_has_no_control_characters(text: str) -> None:
    shown = printable(text)
    shown.encode()
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown)


@given(st.text(st.characters(exclude_categories=[])))
def test_escaped_json_means_the_same(text: str) -> None:
    document = escape_json(json.dumps({"x": text}, indent=1, ensure_ascii=False))
    document.encode()
    assert not any(ord(c) != 10 and (ord(c) < 32 or 127 <= ord(c) < 160) for c in document)
    assert json.loads(document.encode()) == {"x": json.loads(json.dumps(text))}


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1", "-", "+"])
def test_a_formula_becomes_text(text: str) -> None:
    assert csv_cell(text) == "'" + text


@pytest.mark.parametrize("text", ["", "a=1", "-1.5", "+2", "-.5e-7", "10.0.0.1:80", "'tis", " x"])
def test_numbers_and_other_text_stay(text: str) -> None:
    assert csv_cell(text) == text


@given(st.text("'=+-@\t\r1a"))
def test_a_cell_gives_its_text_back(text: str) -> None:
    assert from_csv_cell(csv_cell(text)) == text


@pytest.mark.parametrize(
    ("octets", "stored"),
    [
        (b"flight.pcap", "flight.pcap"),
        ("Flug äö 😀.pcap".encode(), "Flug äö 😀.pcap"),
        (b"caf\xe9.pcap", "file:caf%E9.pcap"),
        (b"/data/caf\xe9 1.pcap", "file:///data/caf%E9%201.pcap"),
        (b"file:x", "file:file%3Ax"),
    ],
)
def test_names_that_are_not_utf8_are_stored_as_uris(octets: bytes, stored: str) -> None:
    assert name_to_text(os.fsdecode(octets)) == stored


@given(OCTETS)
def test_a_stored_name_is_text_and_comes_back(octets: bytes) -> None:
    stored = name_to_text(os.fsdecode(octets))
    stored.encode()
    assert os.fsencode(name_from_text(stored)) == octets


def test_uris_of_people() -> None:
    assert name_from_text("file:///a/b%20c") == "/a/b c"
    assert name_from_text("file:/a/b") == "/a/b"
    assert name_from_text("file://localhost/a") == "/a"
    with pytest.raises(ValueError, match="host elsewhere"):
        name_from_text("file://elsewhere/a")
    with pytest.raises(ValueError, match="octet 0"):
        name_from_text("file:a%00b")


@given(st.lists(OCTETS, min_size=1, max_size=3))
def test_a_shell_reads_the_words_back(words: list[bytes]) -> None:
    line = shell_line([os.fsdecode(word) for word in words])
    assert printable(line) == line
    read = subprocess.run(
        ["bash", "-c", f"LC_ALL=C; printf '%s\\0' {line}"], capture_output=True, check=True
    ).stdout.split(b"\0")[:-1]
    assert read == words
