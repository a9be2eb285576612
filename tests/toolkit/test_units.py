"""Quantities with units: both what is accepted and what is refused."""

from __future__ import annotations

import pytest

from hindflight.toolkit.units import PACKETS, RATE, SIZE, TIME, Quantity, format_rate, format_time, quantity_of


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


@pytest.mark.parametrize(
    ("quantity", "value", "text"),
    [
        (TIME, 1e6, "1 ms"),
        (TIME, 60e9, "60 s"),
        (TIME, 720 * 3600e9, "720 h"),
        (TIME, 0, "0 ns"),
        (RATE, 8, "8 bit/s"),
        (RATE, 1e13, "10000 Gbit/s"),
        (SIZE, 29, "29 B"),
        (SIZE, 65_536, "64 KiB"),
        (PACKETS, 1, "1 pkt"),
        (PACKETS, 4, "4 pkts"),
    ],
)
def test_a_bound_is_written_as_a_file_could_have_it(quantity: Quantity, value: float, text: str) -> None:
    assert quantity.write(value) == text
    assert quantity.parse(text) == value


def test_the_unit_determines_the_kind() -> None:
    assert quantity_of("5 ms") is TIME
    assert quantity_of("1.5 Mbit/s") is RATE
    assert quantity_of("3 pkts") is PACKETS
    assert quantity_of("3 apples") is None
    assert quantity_of("3") is None
