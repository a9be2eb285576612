from __future__ import annotations

import math

import pytest

from hindflight.reports.numbers import interval, quantity


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1_749_770.0, "bit/s", "1.750 Mbit/s"),
        (999.0, "bit/s", "999.0 bit/s"),
        (1000.0, "bit/s", "1.000 kbit/s"),
        (-8993.0, "bit/s", "−8.993 kbit/s"),
        (13_303_808.0, "bytes", "13.30 MB"),
        (0.0, "bytes", "0 B"),
        (480.326e6, "ns", "480.3 ms"),
        (500.0, "ns", "500.0 ns"),
        (65e9, "ns", "65.00 s"),
        (240e9, "ns", "4.000 min"),
        (409.0, "segments", "409 segments"),
        (15_204.0, "", "15,204"),
        (3.14159, "%", "3.14 %"),
        (0.0, "", "0"),
        (2.5e-7, "", "2.50e−07"),
        (math.inf, "bytes", "unlimited"),
        (math.nan, "s", "not a number"),
        (None, "bit/s", "not known"),
    ],
)
def test_quantity_has_four_digits_and_a_unit(value: float | None, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@pytest.mark.parametrize(
    ("low", "high", "unit", "text"),
    [
        (3_970_000.0, 4_020_000.0, "bit/s", "3.970 to 4.020 Mbit/s"),
        (978_800.0, 1_140_000.0, "bit/s", "0.979 to 1.140 Mbit/s"),
        (-36_440.0, 18_450.0, "bit/s", "−36.44 to 18.45 kbit/s"),
        (190.0, 210.0, "pkts", "190 to 210 pkts"),
        (0.0, 0.0, "%", "0 to 0 %"),
        (0.0, 0.000424, "", "0 to 0.000424"),
        (None, 1.0, "s", ""),
        (1.0, None, "s", ""),
    ],
)
def test_interval_has_one_multiple_for_both_ends(low: float | None, high: float | None, unit: str, text: str) -> None:
    assert interval(low, high, unit) == text


def test_value_has_the_multiple_and_decimals_of_its_interval() -> None:
    assert quantity(979_900.0, "bit/s", (838_000.0, 1_122_000.0)) == "0.980 Mbit/s"
    assert quantity(94.8, "%", (86.4, 103.2)) == "95 %"
    assert quantity(200.0, "pkts", (198.9, 201.1)) == "200 pkts"
    assert quantity(979_900.0, "bit/s", (None, None)) == "979.9 kbit/s"
    assert quantity(0.0, "%", (0.0, 0.0)) == "0 %"
