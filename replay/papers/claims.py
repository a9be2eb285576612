"""The claims of each paper, from the files of this package. Read data/claims-000.toml for the format."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from hindflight.replay.papers.model import Claim


@cache
def claims_of(number: str) -> tuple[Claim, ...]:
    """Return the claims of the paper with this number ("000"), in their order."""
    text = (files("hindflight.replay.papers") / "data" / f"claims-{number}.toml").read_text(encoding="utf-8")
    return tuple(_claim(table) for table in tomllib.loads(text)["claim"])


def _claim(table: dict[str, object]) -> Claim:
    keys = dict(table)
    keys["claim_id"] = keys.pop("id")
    accept = keys.pop("accept", None)
    bounds = (float(accept[0]), float(accept[1])) if isinstance(accept, list) else None
    return Claim(**keys, accept=bounds)  # type: ignore[arg-type]
