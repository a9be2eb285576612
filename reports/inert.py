"""Specifications of charts with the text of others made inert: no control character reaches a page or a picture."""

from __future__ import annotations

from typing import Any

from hindflight.toolkit.text import printable


def inert(part: Any) -> Any:
    """Return a specification, or a part of it, in which every text is printable; line ends and tabs stay."""
    if isinstance(part, str):
        # Data sets are long, and nearly all of them need no change.
        return part if part.replace("\n", "").isprintable() else printable(part, keep="\n\t")
    if isinstance(part, dict):
        return {inert(key): inert(value) for key, value in part.items()}
    if isinstance(part, list):
        return [inert(value) for value in part]
    return part
