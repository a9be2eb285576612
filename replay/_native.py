"""The one module of this package that touches the native core."""

from __future__ import annotations

from hindflight._native import (
    Parameter,
    Variant,
    check,
    profile,
    replay,
    replay_batches,
    replay_controller,
    variants,
)

__all__ = [
    "Parameter",
    "Variant",
    "check",
    "profile",
    "replay",
    "replay_batches",
    "replay_controller",
    "variants",
]
