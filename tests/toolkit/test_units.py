"""Quantities with units: both what is accepted and what is refused."""

from __future__ import annotations

import pytest

from toolkit.units import PACKETS, RATE, SIZE, TIME, Quantity, format_rate, format_time


@pytest.mark.parametrize(
    ("quantity", "text", "value"),
    [
        (RATE, "1 Mbit/s", 1e6),
        (RATE, "512kbit/s", 512e3),
        (RATE, "2.5e-1 Gbps", 250e6),
        (TIME, "125 ms", 125e6),
        (TIME, "1_000 us", 1e6),
        (TIME, "0 s", 0),
        (TIME, "1.5 min", 90e9),
        (SIZE, "5 MB", 5e6),
        (SIZE, "1 MiB", 1_048_576),
        (PACKETS, "50 pkts", 50),
        (PACKETS, "1 pkt", 1),
    ],
)
def test_reads_a_number_with_its_unit(quantity: Quantity, text: str, value: float) -> None:
    assert quantity.parse(text) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("quantity", "text", "says"),
    [
        (RATE, 4, "with its unit"),
        (RATE, "4", "unit is missing"),
        (RATE, "4 Mbits", "unit 'Mbits' is not known"),
        (RATE, "4 mbit/s", "unit 'mbit/s' is not known"),
        (RATE, "-4 Mbit/s", "cannot be negative"),
        (RATE, "1e999 bit/s", "infinite"),
        (TIME, "fast", "is not a time"),
        (TIME, "nan ms", "is not a time"),
        (TIME, "1 2 s", "is not a time"),
        (PACKETS, "50 packets", "one of pkts, pkt"),
        (SIZE, True, "with its unit"),
    ],
)
def test_refuses_what_could_be_misread(quantity: Quantity, text: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        quantity.parse(text)


def test_prints_readable_quantities_that_read_back() -> None:
    for rate in (512.0, 512e3, 3_998_000.0, 2.5e9):
        assert RATE.parse(format_rate(rate)) == pytest.approx(rate, rel=1e-3)
    for time in (5.0, 2_500.0, 480_326_000.0, 60e9):
        assert TIME.parse(format_time(time)) == pytest.approx(time, rel=1e-5)
