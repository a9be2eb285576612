"""Bit-exact functions and models, so that equal seeds give equal channels on every machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hindflight.channels import portable
from hindflight.channels.models.parameters import parse
from hindflight.channels.models.synth import ANY_MODEL, model_states

ROOM = Path(portable.__file__).parent
PLATFORM = re.compile(r"math\.(exp|log|pow|erf|sin|cos|tan|asin|acos|atan|hypot|dist|cbrt|gamma|lgamma)\w*\(")


@pytest.mark.parametrize(
    ("name", "arguments", "bits"),
    [
        ("exp", (-1.7,), "0x1.7622c78a98a07p-3"),
        ("exp", (3.3,), "0x1.b1cd5e7807b7bp+4"),
        ("log", (0.37,), "-0x1.fd0ea24bf89b8p-1"),
        ("log10", (58.3e6,), "0x1.f100b6ae90fedp+2"),
        ("erfc", (2.1,), "0x1.86864fb26b017p-9"),
        ("erfc", (-0.4,), "0x1.6dab1f12c8281p+0"),
        ("sin", (2.5,), "0x1.326af0dcfcab0p-1"),
        ("cos", (1.1,), "0x1.d07b806c76111p-2"),
        ("acos", (0.3,), "0x1.441f5ecbeef59p+0"),
        ("atan2", (-2.0, -3.0), "-0x1.46dc09ec29433p+1"),
        ("of_db", (7.3,), "0x1.57b34a1dce50ap+2"),
        ("hypot", (1.1, 2.2, 3.3), "0x1.0769a565fbc68p+2"),
    ],
)
def test_functions_are_bit_exact(name: str, arguments: tuple[float, ...], bits: str) -> None:
    assert getattr(portable, name)(*arguments).hex() == bits


def states(model: str, count: int, **data: Any) -> list[tuple[int, str | None, int | None, str | None]]:
    """Return start, rate, delay and bit error rate of the first states, with all their bits."""
    drawn = model_states(parse(ANY_MODEL, {"model": model, **data}, model), 60 * 10**9, 5)
    return [(s.start_ns, bits(s.rate_bps), s.delay_ns, bits(s.ber)) for s, _ in zip(drawn, range(count), strict=False)]


def bits(value: float | None) -> str | None:
    return None if value is None else value.hex()


def test_slots_are_bit_exact() -> None:
    assert states("slots", 3) == [
        (0, "0x1.5c04cecfcfc09p+27", 19_734_163, None),
        (12_000_000_000, "0x1.33780a3ebe306p+27", 23_888_933, None),
        (27_000_000_000, "0x1.c78e0e3a38828p+25", 18_116_802, None),
    ]


def test_rain_is_bit_exact() -> None:
    rain = {"median_db": 2.0, "sigma": 1.2}
    assert states("signal", 3, ebn0_db=9.0, rain=rain) == [
        (0, None, None, "0x1.009d02dd719b3p-4"),
        (1_000_000_000, None, None, "0x1.0996b5a06db23p-4"),
        (2_000_000_000, None, None, "0x1.12b2f51868344p-4"),
    ]


@pytest.mark.parametrize(
    ("modulation", "bits"),
    [
        ("qpsk", "0x1.12bfaad444a95p-11"),
        ("8psk", "0x1.45dffe49d6ef8p-7"),
        ("16qam", "0x1.d55b83fabbcc0p-7"),
        ("64qam", "0x1.016627a0a6d6cp-4"),
        ("fsk", "0x1.1763bc1e39306p-5"),
        ("dbpsk", "0x1.30ea8ae4ea441p-9"),
    ],
)
def test_bit_error_rates_are_bit_exact(modulation: str, bits: str) -> None:
    assert states("signal", 1, ebn0_db=7.3, modulation=modulation) == [(0, None, None, bits)]


def test_link_budget_is_bit_exact() -> None:
    budget = {"eirp_dbw": 20.0, "g_over_t_dbk": 5.0, "frequency": "12 GHz", "bit_rate": "5 Mbit/s"}
    drawn = states("track", 1, near={"latitude": 52.0, "longitude": 13.0}, far={"geo": 19.2}, budget=budget)
    assert drawn == [(0, None, 128_690_114, "0x1.c02e7367eef04p-2")]


def test_no_model_calls_the_platforms_math_library() -> None:
    used = {path.name: PLATFORM.findall(path.read_text()) for path in ROOM.rglob("*.py")}
    assert "portable.py" in used
    assert {name: found for name, found in used.items() if found} == {}
    assert PLATFORM.search("math.log10(2.0)")
