"""How well two captures of one flow tell clocks, delays and losses: recorded runs with a false clock at the receiver.

`python -m validation.pairs FOLDER...` takes recorded runs, or folders of them, gives the receiver an offset of
37 s and a drift of 40 ppm, pairs it with the sender's, and compares with the link's log.
"""

from __future__ import annotations

import csv
import lzma
import struct
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hindflight as hf

OFFSET_NS = 37_000_000_000
DRIFT = 40e-6
TIMELY_NS = 200_000
"""Rows of the log that the emulator delivered later or earlier than this than its model says do not judge delays."""
SAME_NS = 3_000_000
"""Time between the sender's capture and the emulator within which a log row can be of a packet."""

_HEADER_BYTES = 24
_NS = 10**9


@dataclass(frozen=True, slots=True)
class Score:
    """Errors of one run: clock (ns, ppm), one-way delays (ns), and losses that only the pair or only the log has."""

    offset_error_ns: float
    drift_error_ppm: float
    delay_median_ns: float
    delay_p99_ns: float
    delays: int
    lost: int
    lost_wrong: int


def score(run: Path) -> Score:
    """Pair the captures of `run`, the receiver's with a false clock, and compare with its log."""
    with tempfile.TemporaryDirectory() as folder:
        sender, receiver = Path(folder, "snd.pcap"), Path(folder, "rcv.pcap")
        sender.write_bytes(lzma.decompress((run / "snd.pcap.xz").read_bytes()))
        start_ns = _times(sender.read_bytes())[0]
        octets = lzma.decompress((run / "rcv.pcap.xz").read_bytes())
        receiver.write_bytes(with_clock(octets, start_ns, OFFSET_NS, DRIFT))
        with hf.pair(sender, receiver, asymmetry="0 ms") as tables:
            clock = tables.arrow("clocks").to_pylist()[0]
            pairs = tables.arrow("pairs").to_pylist()
            raw = {
                (row["flow_id"], row["record"]): (row["seq_raw"], row["ack_raw"], row["payload_bytes"])
                for row in tables.arrow("segments").to_pylist()
            }
    log = _log(run)
    errors = _delay_errors(pairs, raw, log)
    expected = OFFSET_NS + (clock["reference_ns"] - start_ns) * DRIFT
    lost = Counter(raw[row["flow_id"], row["record"]][::2] for row in pairs if row["fate"] == "lost" and row["record"])
    dropped = Counter((seq, payload) for (seq, _, payload), rows in log.items() for row in rows if row[1] is None)
    return Score(
        clock["offset_ns"] - expected,
        clock["drift_ppm"] - DRIFT * 1e6,
        float(np.median(errors)),
        float(np.quantile(errors, 0.99)),
        len(errors),
        lost.total(),
        (lost - dropped).total() + (dropped - lost).total(),
    )


def with_clock(octets: bytes, start_ns: int, offset_ns: int, drift: float) -> bytes:
    """Return a pcap file (ns, little-endian) by a clock that is ahead by `offset_ns` at `start_ns`, and drifts."""
    out, at = bytearray(octets), _HEADER_BYTES
    while at < len(out):
        seconds, fraction, captured = struct.unpack_from("<III", out, at)
        t_ns = seconds * _NS + fraction
        moved = t_ns + offset_ns + round((t_ns - start_ns) * drift)
        struct.pack_into("<II", out, at, *divmod(moved, _NS))
        at += 16 + captured
    return bytes(out)


def _times(octets: bytes) -> list[int]:
    seconds, fraction = struct.unpack_from("<II", octets, _HEADER_BYTES)
    return [seconds * _NS + fraction]


Log = dict[tuple[int, int, int], list[tuple[int, int | None, bool]]]


def _log(run: Path) -> Log:
    """Arrival and departure (None: dropped) of each data packet at the link, and whether it was in time."""
    found: Log = defaultdict(list)
    with lzma.open(run / "link.csv.xz", "rt") as file:
        for row in csv.DictReader(file):
            if row["dir"] == "data" and row["fate"] != "unfinished":
                key = (int(row["seq"]), int(row["ack"]), int(row["plen"]))
                departed = int(row["t_dep_ns"]) if row["fate"] == "delivered" else None
                found[key].append((int(row["t_arr_ns"]), departed, abs(int(row["dep_err_ns"])) < TIMELY_NS))
    return found


def _delay_errors(
    pairs: list[dict[str, Any]], raw: dict[tuple[int, int], tuple[int, int, int]], log: Log
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Differences between the one-way delays of the pair and those of the link, without sign."""
    errors = []
    for row in pairs:
        if row["fate"] != "delivered" or row["direction"] != "a2b":
            continue
        rows = log.get(raw[row["flow_id"], row["record"]], ())
        arrived, departed, timely = min(rows, key=lambda r: abs(r[0] - row["t_ns"]), default=(0, None, False))
        if timely and departed is not None and abs(arrived - row["t_ns"]) < SAME_NS:
            errors.append(abs(row["delay_ns"] - (departed - arrived)))
    return np.array(errors)


def main(folders: list[str]) -> None:
    """Print a line per run."""
    print(f"{'run':<16}{'offset':>10}{'drift':>10}{'delay median':>14}{'p99':>9}{'delays':>8}{'lost':>6}{'wrong':>7}")
    for run in runs_in([Path(folder) for folder in folders]):
        s = score(run)
        clock = f"{s.offset_error_ns / 1e6:>7.3f} ms{s.drift_error_ppm:>+6.2f} ppm"
        delays = f"{s.delay_median_ns / 1e6:>11.3f} ms{s.delay_p99_ns / 1e6:>6.3f} ms{s.delays:>8}"
        print(f"{run.name:<16}{clock}{delays}{s.lost:>6}{s.lost_wrong:>7}", flush=True)


def runs_in(folders: list[Path]) -> list[Path]:
    """Return the folders with both captures among `folders` and directly in them."""
    found = [run for folder in folders for run in (folder, *sorted(folder.iterdir()))]
    return [run for run in found if (run / "snd.pcap.xz").exists() and (run / "rcv.pcap.xz").exists()]


if __name__ == "__main__":
    main(sys.argv[1:])
