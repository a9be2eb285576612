"""The innermost objects of a JSON file, one by one and in constant memory, also where the file is cut or damaged.

iperf3 and ndt7 write one JSON document per test, in which each sample is an object that holds no other. Read so, a
test that was killed keeps its samples.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from hindflight.toolkit.logs.octets import LogFile

_OBJECT = re.compile(rb"\{[^{}]*\}")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_MAX_OBJECT_BYTES = 1 << 16


class FlatObject(NamedTuple):
    """An innermost object: the text since the one before it, its value (None if damaged), and its place."""

    before: bytes
    value: dict[str, Any] | None
    record: int
    offset: int


def flat_objects(file: LogFile) -> Iterator[FlatObject]:
    """Yield the innermost objects; what is too long, and a document that is not closed, become issues."""
    rest, offset, record, depth = b"", 0, 0, 0
    for chunk in file.chunks():
        if record == 0 and not rest:
            offset = file.skipped_bytes
        rest += chunk
        at = 0
        for found in _OBJECT.finditer(rest):
            record += 1
            before = rest[at : found.start()]
            depth += _opened(before)
            yield FlatObject(before, _value(found[0]), record, offset + found.start())
            at = found.end()
        offset, rest = offset + at, rest[at:]
        if len(rest) > _MAX_OBJECT_BYTES:
            text = f"{len(rest)} octets without a whole object were left out"
            file.issues.add(record + 1, offset, "log_damaged", text)
            depth += _opened(rest)
            offset, rest = offset + len(rest), b""
    if depth + _opened(rest) != 0:
        file.issues.add(record, offset, "log_truncated", "the JSON document is not closed; its whole records were kept")


def _opened(text: bytes) -> int:
    """How many more braces `text` opens than it closes, outside strings."""
    plain = _STRING.sub(b"", text)
    return plain.count(b"{") - plain.count(b"}")


def _value(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
