"""The one module of this room that touches the native core."""

from __future__ import annotations

from toolkit._native import (
    FadeWalk,
    LossStream,
    StateWalk,
    StreetCanyon,
    StreetWalk,
    draw_street,
    fit_losses,
    loss_models,
    loss_shape,
    normal_numbers,
)

__all__ = [
    "FadeWalk",
    "LossStream",
    "StateWalk",
    "StreetCanyon",
    "StreetWalk",
    "draw_street",
    "fit_losses",
    "loss_models",
    "loss_shape",
    "normal_numbers",
]
