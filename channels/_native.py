"""The only module of this package that imports the native core."""

from __future__ import annotations

from hindflight._native import (
    FadeWalk,
    LossStream,
    StateWalk,
    StreetCanyon,
    StreetWalk,
    acos,
    atan2,
    cos,
    draw_street,
    erfc,
    exp,
    fit_losses,
    log,
    log10,
    loss_models,
    loss_shape,
    normal_numbers,
    sin,
)
from hindflight._native import (
    pow as power,
)

__all__ = [
    "FadeWalk",
    "LossStream",
    "StateWalk",
    "StreetCanyon",
    "StreetWalk",
    "acos",
    "atan2",
    "cos",
    "draw_street",
    "erfc",
    "exp",
    "fit_losses",
    "log",
    "log10",
    "loss_models",
    "loss_shape",
    "normal_numbers",
    "power",
    "sin",
]
