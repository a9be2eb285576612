"""Link budgets: free-space loss, and bit error rate by signal-to-noise ratio and modulation.

See docs/channels/budget.md.
"""

from __future__ import annotations

import math
from typing import Literal

from hindflight.channels.portable import erfc, exp, log10, of_db, sin
from hindflight.toolkit.errors import ChannelError

Modulation = Literal["bpsk", "qpsk", "8psk", "16qam", "64qam", "fsk", "dbpsk"]
BOLTZMANN_DBW = -228.599_167
"""10 log10 of 1.380649e-23 J/K."""

_SQUARE_QAM = {"16qam": 4, "64qam": 6}


def bit_error_rate(modulation: Modulation, ebn0_db: float) -> float:
    """Return the bit error rate without coding in white noise at `ebn0_db`, Gray-coded.

    J. G. Proakis, "Digital Communications", 4th ed., §5.2: exact for bpsk, qpsk, fsk (binary, non-coherent) and dbpsk;
    the usual nearest-neighbour approximation for 8psk and square QAM.
    """
    ratio = of_db(min(ebn0_db, 60.0))
    match modulation:
        case "bpsk" | "qpsk":
            rate = 0.5 * erfc(math.sqrt(ratio))
        case "8psk":
            rate = erfc(math.sqrt(3 * ratio) * sin(math.pi / 8)) / 3
        case "16qam" | "64qam":
            bits = _SQUARE_QAM[modulation]
            side = 2 ** (bits // 2)
            argument = math.sqrt(3 * bits * ratio / (2 * (side * side - 1)))
            rate = 2 / bits * (1 - 1 / side) * erfc(argument)
        case "fsk":
            rate = 0.5 * exp(-ratio / 2)
        case "dbpsk":
            rate = 0.5 * exp(-ratio)
    return min(rate, 0.5)


def free_space_db(range_m: float, frequency_hz: float) -> float:
    """Return the free-space loss between isotropic antennas in dB: ITU-R P.525 §2.3. ChannelError at a range of 0."""
    ratio = 4 * math.pi * range_m * frequency_hz / 299_792_458.0
    if ratio <= 0:
        raise ChannelError(f"the range of a link budget is {range_m:g} m; it must be more than 0 m")
    return 20 * log10(ratio)
