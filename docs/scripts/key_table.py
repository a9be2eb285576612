"""The table of keys on the generated pages of scenario files and channel models."""

from __future__ import annotations

from collections.abc import Iterable

from hindflight.channels.models.reference import Key


def key_table(keys: Iterable[Key]) -> list[str]:
    """Return the lines of a Markdown table with a row per key: name, allowed values, default."""
    return ["| key | may be | default |", "|---|---|---|", *(_line(key) for key in keys)]


def _line(key: Key) -> str:
    return f"| `{key.name}` | {key.allowed} | {'required' if key.default is None else f'`{key.default}`'} |"
