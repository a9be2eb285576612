"""Makes the reports that the gallery of the site links to: `python -m docs.scripts.make_gallery FOLDER`.

`make docs` runs it before Sphinx.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

GEO_LINK = """\
name = "GEO link with burst losses"
duration = "120 s"
path = ["aircraft", "ground"]

[[links]]
name = "satellite"
rate = "4 Mbit/s"
delay = "260 ms"
queue = "200 pkts"
loss = { model = "gilbert_elliott", mean_loss = 0.005, mean_burst = 8.0 }

[flow]
profile = "linux"

[compare]
variants = ["linux-reno", "cubic", "hybla", "bbr"]
seeds = 20
"""

BANKING = """\
name = "An aircraft that banks away from its satellite"
duration = "120 s"
path = ["aircraft", "ground"]

[[links]]
name = "satellite"
rate = "4 Mbit/s"
delay = "250 ms"
queue = "120 pkts"
channel = { model = "track", near = { file = "track.csv" }, far = { geo = 9.0 }, field_of_view = 70 }

[flow]
profile = "linux"

[compare]
variants = ["cubic"]
seeds = 1
"""

STEP_S, FLIGHT_S = 0.5, 120
TURNS_S = ((25, 37), (70, 82))
SPEED_M_PER_S, TURN_DEG_PER_S, BANK_DEG, ROLL_DEG_PER_S = 60.0, 15.0, 50.0, 25.0
METRES_PER_DEGREE = 111_200


def flight() -> list[tuple[float, ...]]:
    """Return a flight west and back with two turns to the right: time, place, altitude, roll and heading."""
    lat, lon, heading, roll = 47.0, 8.0, 270.0, 0.0
    rows: list[tuple[float, ...]] = []
    for step in range(round(FLIGHT_S / STEP_S) + 1):
        t = step * STEP_S
        turning = any(begin <= t < end for begin, end in TURNS_S)
        roll = min(BANK_DEG, roll + ROLL_DEG_PER_S * STEP_S) if turning else max(0.0, roll - ROLL_DEG_PER_S * STEP_S)
        heading = (heading + TURN_DEG_PER_S * STEP_S * turning) % 360
        ahead = SPEED_M_PER_S * STEP_S / METRES_PER_DEGREE
        lat += ahead * math.cos(math.radians(heading))
        lon += ahead * math.sin(math.radians(heading)) / math.cos(math.radians(lat))
        rows.append((t, lat, lon, 3000.0, roll, heading))
    return rows


def write_flight(folder: Path) -> None:
    """Write the flight as a track, over which the scenario moves its link, and as the log of the flight."""
    track, log = ["t_s,latitude,longitude,altitude_m,roll,pitch,heading"], ["t_s,lat_deg,lon_deg,alt_m,roll_deg"]
    for t, lat, lon, altitude, roll, heading in flight():
        track.append(f"{t},{lat:.6f},{lon:.6f},{altitude:.0f},{roll},0,{heading:.1f}")
        log.append(f"{t},{lat:.6f},{lon:.6f},{altitude:.0f},{roll}")
    (folder / "track.csv").write_text("\n".join([*track, ""]))
    (folder / "flight.csv").write_text("\n".join([*log, ""]))
    (folder / "banking.toml").write_text(BANKING)


FLIGHT_COMMANDS = (
    ["export", "banking.toml", "--format", "pcapng", "-o", "captures"],
    ["ingest", "captures/1-cubic-none-aircraft.pcapng", "-w", "flight"],
    ["ingest", "flight.csv", "--clock-offset", "0", "-w", "flight"],
    ["report", "flight", "-o", "flight.html"],
)


def make(folder: Path) -> None:
    """Write the reports into `folder`/reports."""
    reports = folder / "reports"
    reports.mkdir(parents=True, exist_ok=True)
    command = Path(sys.executable).with_name("hindflight")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "geo-link.toml").write_text(GEO_LINK)
        write_flight(work)
        for arguments in (
            ["demo", "-o", "demo"],
            ["replay", "geo-link.toml", "-w", "ws", "--report", "geo-link.html"],
            *FLIGHT_COMMANDS,
        ):
            subprocess.run([command, *arguments], cwd=work, check=True, stdout=subprocess.DEVNULL)
        shutil.copy(work / "demo" / "report.html", reports / "demo.html")
        shutil.copy(work / "geo-link.html", reports / "geo-link.html")
        shutil.copy(work / "flight.html", reports / "flight.html")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
