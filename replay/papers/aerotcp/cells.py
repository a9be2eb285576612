"""The configurations of Shang, Hadjitheodosiou and Baras 2005 and what is measured of each.

Depends on the lab; knows no claim.
"""

from __future__ import annotations

import numpy as np

from hindflight.replay.papers.lab import Rows
from hindflight.replay.papers.model import Cell, Change, table
from hindflight.toolkit.errors import HindflightError

TEN, ONE = "aerotcp", "aerotcp-one"
"""Ten connections over 4 Mbit/s, and one over 400 kbit/s."""
SACK, AERO_WINDOW = "sack", "sat"
GATEWAYS = "ground+aircraft"
AERO, SPLIT, END_TO_END = "AeroTCP", "split SACK", "end-to-end SACK"
SCHEMES = (AERO, SPLIT, END_TO_END)

VERY_LOW, LOW, HIGH = 1e-8, 1e-6, 1e-5
"""Bit error rates: the exponents are lost in print, and read from what the text says of each."""
BERS = (VERY_LOW, 1e-7, LOW, 3e-6, HIGH)
FEW_BERS = (VERY_LOW, LOW, HIGH)

MSS_BYTES, PACKET_BYTES = 1460, 1500
SATELLITE_BPS, CONNECTION_BPS = 4e6, 400e3
SATELLITE_RTT_S, GROUND_RTT_S = 0.48, 0.08
PRDP_BYTES = 24_000
"""Peak rate times the RTT of the satellite link: 400 kbit/s x 480 ms."""
LARGE_FILE = "5 MB"
_OTHERS = tuple(f"f{number}" for number in range(2, 11))


_WITH_SACK: tuple[Change, ...] = (("proxy.ground.variant", SACK), ("variants.sat", None))


PAGES: tuple[Change, ...] = (
    ("flow.size", None),
    ("flow.application", table(kind="pages", page="50 kB", think="5 s", pages=20)),
)
MEDIA: tuple[Change, ...] = (
    ("flow.size", None),
    ("flow.application", table(kind="stream", rate="300 kbit/s")),
    ("duration", "300 s"),
)
"""Section VI gives neither pages nor rates: 50 kB, and three quarters of the rate of the connection."""


def errors(ber: float) -> tuple[Change, ...]:
    """Return the changes that give the satellite link this bit error rate, for data and ACKs."""
    loss = table(model="ber", ber=ber) if ber else table(model="none")
    return (("links.satellite.loss", loss), ("links.satellite.reverse.loss", loss))


def ten(scheme: str, ber: float) -> Cell:
    """Return ten connections that each load a file by `scheme`."""
    if scheme == END_TO_END:
        apart = tuple((f"flows.{name}.proxies", ()) for name in _OTHERS)
        return Cell(TEN, SACK, "none", (*errors(ber), *apart))
    plain = _WITH_SACK if scheme == SPLIT else ()
    return Cell(TEN, SACK, GATEWAYS, (*errors(ber), *plain))


def one(scheme: str, ber: float) -> Cell:
    """Return one connection over 400 kbit/s by `scheme`."""
    if scheme == END_TO_END:
        return Cell(ONE, SACK, "none", errors(ber))
    plain = _WITH_SACK if scheme == SPLIT else ()
    return Cell(ONE, SACK, GATEWAYS, (*errors(ber), *plain))


def with_size(cell: Cell, size: str) -> Cell:
    """Return ten connections that load files of `size`."""
    return cell.but(("flow.size", size), *((f"flows.{name}.size", size) for name in _OTHERS))


def without_end(cell: Cell, duration: str = "300 s") -> Cell:
    """Return one connection that always has data, for `duration`."""
    return cell.but(("flow.size", None), ("duration", duration))


def buffers(cell: Cell, *, send: int | None = None, ground: int | None = None, receive: int | None = None) -> Cell:
    """Return `cell` with buffers in octets: satellite send, ground receive, satellite receive."""
    sizes = {
        "proxy.ground.send_buffer": send,
        "proxy.ground.receive_buffer": ground,
        "proxy.aircraft.receive_buffer": receive,
    }
    return cell.but(*((path, f"{size} B") for path, size in sizes.items() if size is not None))


def utilisation(rows: Rows) -> float:
    """Share of the satellite rate that delivered packets use until the last file is loaded.

    The sum of the goodputs would exceed 1 where some connections end early, since each counts its own time.
    """
    octets = sum(float(row["delivered_bytes"]) for row in rows) * PACKET_BYTES / MSS_BYTES
    last_s = max(float(row["duration_ns"]) for row in rows) / 1e9
    return 8 * octets / (SATELLITE_BPS * last_s)


def response_s(rows: Rows) -> float:
    """Mean time of a file in s. HindflightError for a run that did not deliver them all."""
    if not all(row["completed"] for row in rows):
        raise HindflightError("a file was not delivered before the end of the run")
    return float(np.mean([row["duration_ns"] / 1e9 for row in rows]))


def jain(rows: Rows) -> float:
    """Jain's index of the goodputs."""
    goodputs = np.array([float(row["goodput_bps"]) for row in rows])
    return float(goodputs.sum() ** 2 / (len(goodputs) * (goodputs**2).sum()))


def goodput_kbps(rows: Rows) -> float:
    """Goodput of the flow under test in kbit/s."""
    return float(rows[0]["goodput_bps"]) / 1e3


def overflows(rows: Rows) -> float:
    """Packets dropped by full queues, of all flows."""
    return float(sum(row["queue_losses"] for row in rows))


def page_s(rows: Rows) -> float:
    """Median time of a page in s."""
    return float(rows[0]["page_load_p50_ns"]) / 1e9


def stalled_s(rows: Rows) -> float:
    """Time in s that playback stopped or had not begun."""
    return float(rows[0]["stalled_ns"]) / 1e9
