"""Draws the pictures of docs/channels: each model compared with its equations.

`python -m docs.scripts.make_channel_pictures` writes docs/images/channels/*.svg; look at each before you commit it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa

from hindflight.channels._native import LossStream
from hindflight.channels.intervals import State
from hindflight.channels.models.budget import bit_error_rate
from hindflight.channels.models.ephemeris import GEO_RADIUS_M, LIGHT_MPS, Place, geostationary, look
from hindflight.channels.models.handover import Slots
from hindflight.channels.models.link_layer import Arq, Fec
from hindflight.channels.models.lms import Lms, lutz
from hindflight.channels.models.losses import GilbertElliott, GilbertElliottTime
from hindflight.channels.models.parameters import parse
from hindflight.channels.models.signal import Budget
from hindflight.channels.models.street import Street
from hindflight.channels.models.track import Track
from hindflight.channels.models.uav import Uav

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images" / "channels"
SECOND = 10**9
MODEL, THEORY = "model", "equation"


def frame(rows: list[dict[str, Any]]) -> alt.InlineData:
    """Return rows as a chart takes them."""
    return alt.InlineData(values=rows)


MIN_SHARE = 1e-3
"""Shares below it are left out of logarithmic axes: too few were seen."""


def lines_and_points(rows: list[dict[str, Any]], x: alt.X, y: alt.Y, colour: str = "case:N") -> Any:
    """Equations as lines, what the model gave as points."""
    base = alt.Chart(frame(rows)).encode(x=x, y=y, color=alt.Color(colour, title=None))
    line = base.transform_filter(alt.datum.source == THEORY).mark_line()
    point = base.transform_filter(alt.datum.source == MODEL).mark_point(filled=True, size=40)
    return alt.layer(line, point)


def lost_of(config: dict[str, Any], packets: int, *, size_bytes: int = 1500, spacing_ns: int = 0) -> Any:
    """Positions of the packets that a process loses."""
    stream = LossStream(json.dumps(config), seed=1)
    return np.asarray(pa.table(stream.read(packets, size_bytes, spacing_ns))["position"]).astype(np.int64)


def bernoulli() -> Any:
    """Runs of packets between two losses."""
    rows: list[dict[str, Any]] = []
    for per in (0.005, 0.02, 0.1):
        gaps = np.diff(lost_of({"kind": "bernoulli", "per": per}, 2_000_000)) - 1
        for n in range(0, 401, 10):
            case = f"per = {per:g}"
            rows.append({"n": n, "share": float(np.mean(gaps >= n)), "case": case, "source": MODEL})
            rows.append({"n": n, "share": (1 - per) ** n, "case": case, "source": THEORY})
    x = alt.X("n:Q", title="Packets that pass between two losses, n")
    y = alt.Y("share:Q", title="Share of runs of n or more", scale=alt.Scale(type="log", domain=[1e-3, 1], clamp=True))
    return lines_and_points([r for r in rows if r["share"] >= MIN_SHARE], x, y).properties(width=520, height=240)


def ber() -> Any:
    """Packet error rate by the packet's length."""
    rows: list[dict[str, Any]] = []
    for rate in (1e-6, 1e-5, 1e-4):
        for size in (40, 100, 200, 400, 600, 800, 1000, 1250, 1500):
            case = f"ber = {rate:.0e}"
            share = len(lost_of({"kind": "ber", "ber": rate}, 400_000, size_bytes=size)) / 400_000
            rows.append({"size": size, "per": share, "case": case, "source": MODEL})
            per = -math.expm1(8 * size * math.log1p(-rate))
            rows.append({"size": size, "per": per, "case": case, "source": THEORY})
    x = alt.X("size:Q", title="Length of the packet [octets]")
    y = alt.Y("per:Q", title="Packet error rate", scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e"))
    return lines_and_points(rows, x, y).properties(width=520, height=240)


def markov() -> Any:
    """The chain per packet that a chain in time is, when it is sampled."""
    good_ms, bad_ms = 90.0, 10.0
    time = {"model": "gilbert_elliott_time", "mean_good": f"{good_ms} ms", "mean_bad": f"{bad_ms} ms"}
    config = GilbertElliottTime.model_validate(time).config()
    rows: list[dict[str, Any]] = []
    for spacing_ms in (0.25, 0.5, 1, 2, 5, 10, 20, 50):
        lost = np.zeros(1_000_000, dtype=bool)
        lost[lost_of(config, len(lost), spacing_ns=round(spacing_ms * 1e6))] = True
        mixing = -math.expm1(-spacing_ms * (1 / good_ms + 1 / bad_ms))
        for name, before, share in (("p, good to bad", False, 0.1), ("r, bad to good", True, 0.9)):
            seen = float(np.mean(lost[1:][lost[:-1] == before] != before))
            rows.append({"d": spacing_ms, "value": seen, "case": name, "source": MODEL})
            rows.append({"d": spacing_ms, "value": share * mixing, "case": name, "source": THEORY})
    x = alt.X("d:Q", title="Time between packets [ms]", scale=alt.Scale(type="log"))
    y = alt.Y("value:Q", title="Probability per packet", scale=alt.Scale(type="log"))
    return lines_and_points(rows, x, y).properties(width=520, height=240)


def budget() -> Any:
    """Energy per bit over noise density by range, for some bit rates."""
    rows = []
    for rate in ("100 kbit/s", "1 Mbit/s", "10 Mbit/s"):
        table = {"eirp_dbw": 20.0, "g_over_t_dbk": 0.0, "frequency": "2 GHz", "bit_rate": rate}
        link: Budget = parse(Budget, table, "budget")
        for step in range(91):
            range_km = 10 ** (1 + step / 25)
            rows.append({"km": range_km, "db": link.ebn0_db(range_km * 1e3), "case": rate})
    x = alt.X("km:Q", title="Range [km]", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(format="~s"))
    y = alt.Y("db:Q", title="Eb/N0 [dB], EIRP 20 dBW, G/T 0 dB/K, 2 GHz")
    line = alt.Chart(frame(rows)).mark_line().encode(x=x, y=y, color=alt.Color("case:N", title="bit rate"))
    return line.properties(width=520, height=240)


def sky() -> Any:
    """Elevation and delay of a geostationary satellite by latitude; lines: a round Earth's closed form."""
    rows: list[dict[str, Any]] = []
    ratio = 6_371_000.0 / GEO_RADIUS_M
    for offset in (0, 30, 60):
        for latitude in range(0, 81, 4):
            seen = look(Place(float(latitude), 0.0), geostationary(float(offset)))
            cosine = math.cos(math.radians(latitude)) * math.cos(math.radians(offset))
            away = math.sqrt(1 + ratio**2 - 2 * ratio * cosine)
            elevation = math.degrees(math.asin((cosine - ratio) / away))
            delay = GEO_RADIUS_M * away / LIGHT_MPS * 1e3
            case = f"{offset} degrees of longitude away"
            common = {"lat": latitude, "case": case}
            found = (math.degrees(seen.elevation), seen.delay_ns / 1e6)
            rows.append({**common, "el": found[0], "ms": found[1], "source": MODEL})
            rows.append({**common, "el": elevation, "ms": delay, "source": THEORY})
    rows = [row for row in rows if row["el"] > 0]
    x = alt.X("lat:Q", title="Latitude [degrees]")
    charts = [
        lines_and_points(rows, x, alt.Y(f"{name}:Q", title=title, scale=alt.Scale(zero=False))).properties(
            width=520, height=150
        )
        for name, title in (("el", "Elevation [degrees]"), ("ms", "One-way delay [ms]"))
    ]
    return alt.vconcat(*charts)


def protect() -> Any:
    """What is left of losses behind ARQ over bursts in time, and behind a block code."""
    arq_rows: list[dict[str, Any]] = []
    over = {"model": "gilbert_elliott_time", "mean_good": "90 ms", "mean_bad": "10 ms"}
    for retries in (1, 2, 4):
        for try_ms in (1, 2, 4, 8, 16, 32):
            table = {"model": "arq", "over": over, "retries": retries, "try_time": f"{try_ms} ms", "in_order": False}
            model: Arq = parse(Arq, table, "arq")
            left = share_left(model, 400_000, 1_000_000_000)
            stays = 0.1 + 0.9 * math.exp(-try_ms * (1 / 90 + 1 / 10))
            case = f"{retries} retries" if retries > 1 else "1 retry"
            arq_rows.append({"x": try_ms, "left": left, "case": case, "source": MODEL})
            arq_rows.append({"x": try_ms, "left": 0.1 * stays**retries, "case": case, "source": THEORY})
    fec_rows: list[dict[str, Any]] = []
    for block, repair in ((20, 2), (20, 4), (50, 5)):
        for per in (0.01, 0.02, 0.04, 0.06, 0.1, 0.15, 0.2):
            over_each: dict[str, Any] = {"model": "bernoulli", "per": per}
            code = {"model": "fec", "over": over_each, "block": block, "repair": repair}
            left = share_left(parse(Fec, code, "fec"), 400_000, 1_000_000)
            others = range(repair, block)
            chances = (math.comb(block - 1, k) * per**k * (1 - per) ** (block - 1 - k) for k in others)
            case = f"{repair} of {block} redundant"
            fec_rows.append({"x": per, "left": left, "case": case, "source": MODEL})
            fec_rows.append({"x": per, "left": per * sum(chances), "case": case, "source": THEORY})
    charts = []
    for rows, title in (
        (arq_rows, "ARQ over bursts of 10 ms: time of a try [ms]"),
        (fec_rows, "FEC: packets lost before"),
    ):
        x = alt.X("x:Q", title=title, scale=alt.Scale(type="log"))
        y = alt.Y("left:Q", title="Left lost", scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", tickCount=5))
        shown = [row for row in rows if row["left"] > 3e-5]
        charts.append(lines_and_points(shown, x, y).properties(width=520, height=190))
    return alt.vconcat(*charts).resolve_scale(color="independent")


def share_left(model: Arq | Fec, packets: int, spacing_ns: int) -> float:
    """Share of packets that are lost all the same."""
    batches = model.outcomes(packets, 1, size_bytes=1500, spacing_ns=spacing_ns)
    return sum(int(batch.lost.sum()) for batch in batches) / packets


def gilbert_elliott() -> Any:
    """Bursts of the same chain per packet and in time, at two rates."""
    chain = GilbertElliott(model="gilbert_elliott", mean_loss=0.1, mean_burst=10.0)
    time = GilbertElliottTime.model_validate(
        {"model": "gilbert_elliott_time", "mean_good": "90 ms", "mean_bad": "10 ms"}
    )
    rows: list[dict[str, Any]] = []
    for per_ms in (1, 4):
        for name, config, r in (
            ("per packet", chain.config(), 0.1),
            ("in time", time.config(), 0.9 * -math.expm1(-(1 / 90 + 1 / 10) / per_ms)),
        ):
            stream = LossStream(json.dumps(config), seed=1)
            lost = np.asarray(pa.table(stream.read(4_000_000, 1500, 1_000_000 // per_ms))["position"])
            cuts = np.flatnonzero(np.diff(lost) != 1)
            lengths = np.diff(np.concatenate([[-1], cuts, [len(lost) - 1]]))
            case = f"{name}, {per_ms} packets/ms" if per_ms > 1 else f"{name}, 1 packet/ms"
            for n in range(1, 98, 6):
                rows.append({"n": n, "share": float(np.mean(lengths >= n)), "case": case, "source": MODEL})
                rows.append({"n": n, "share": (1 - r) ** (n - 1), "case": case, "source": THEORY})
    x = alt.X("n:Q", title="Length of a burst n [packets]", scale=alt.Scale(domain=[0, 100], clamp=True))
    y = alt.Y(
        "share:Q", title="Share of bursts of n or more", scale=alt.Scale(type="log", domain=[1e-3, 1], clamp=True)
    )
    return lines_and_points([r for r in rows if r["share"] >= MIN_SHARE], x, y).properties(width=520, height=260)


def street() -> Any:
    """Blocked share and the closed form, and the sky from one place."""
    rows: list[dict[str, Any]] = []
    for azimuth in (20, 45, 90):
        for elevation in range(10, 88, 4):
            table = {
                "model": "street", "satellite": {"azimuth": float(azimuth), "elevation": float(elevation)},
                "facades": {"law": "constant", "value": "10 m"}, "speed": "10 m/s", "step": "1 s",
            }  # fmt: skip
            model: Street = parse(Street, table, "street")
            plain = model.model_copy(update={"blocks": None})
            states = list(plain.states(2000 * SECOND, elevation))
            share = sum(s.end_ns - s.start_ns for s in states if s.lost) / (2000 * SECOND)
            edge = 1.5 + 10 * math.tan(math.radians(elevation)) / math.sin(math.radians(azimuth))
            closed = 0.5 * math.erfc(math.log(edge / 20.6) / 0.44 / math.sqrt(2))
            case = f"{azimuth} degrees to the street"
            rows.append({"el": elevation, "share": share, "case": case, "source": MODEL})
            rows.append({"el": elevation, "share": closed, "case": case, "source": THEORY})
    x, y = alt.X("el:Q", title="Elevation [degrees]"), alt.Y("share:Q", title="Share of the way blocked")
    shares = lines_and_points(rows, x, y).properties(width=520, height=220)
    return alt.vconcat(shares, _sky())


def _sky() -> Any:
    table = {"model": "street", "satellite": {"azimuth": 60.0, "elevation": 37.8}}
    canyon = parse(Street, table, "street").canyon(600 * SECOND, 1)
    azimuths = [math.radians(a) for a in range(0, 361, 2)]
    masks = canyon.masks(100.0, azimuths)
    rows = [{"az": math.degrees(a), "mask": math.degrees(m)} for a, m in zip(azimuths, masks, strict=True)]
    x = alt.X(
        "az:Q", title="Azimuth from the direction of travel [degrees]", scale=alt.Scale(domain=[0, 360], nice=False)
    )
    y = alt.Y("mask:Q", title="Masking angle [degrees]", scale=alt.Scale(domain=[0, 90]))
    area = alt.Chart(frame(rows)).mark_area(color="#888", interpolate="step").encode(x=x, y=y)
    seen = alt.Chart(frame([{"az": 60, "mask": 37.8}])).mark_point(color="#d62728", size=90, filled=True)
    return alt.layer(area, seen.encode(x="az:Q", y="mask:Q")).properties(width=520, height=180)


def uav() -> Any:
    """What arrives in a second of an offered 1 Mbit/s, as Fig. 1 of the ASRAN paper: shares, and their sum."""
    model: Uav = parse(Uav, {"model": "uav"}, "uav")
    rates = np.zeros(3600 * 24)
    for s in model.states(len(rates) * SECOND, 1):
        rates[s.start_ns // SECOND : s.end_ns // SECOND] = 0 if s.lost else (s.rate_bps or 0) / 1e3
    levels = np.arange(0, 1001, 100)
    rows = [{"rate": int(v), "share": float(np.mean(rates == v)), "sum": float(np.mean(rates <= v))} for v in levels]
    x = alt.X("rate:Q", title="Delivered in a second [kbit/s] of 1000 offered", scale=alt.Scale(domain=[-60, 1060]))
    y = alt.Y("share:Q", title="Share of seconds", scale=alt.Scale(domain=[0, 1]))
    bars = alt.Chart(frame(rows)).mark_bar(size=26, color="#2f93cc").encode(x=x, y=y)
    total = alt.Chart(frame(rows)).mark_line(interpolate="step-after", color="#22262b").encode(x=x, y="sum:Q")
    marks = [{"y": 0.19, "what": "nothing: 19 % of the time"}, {"y": 0.5, "what": "full rate: under 50 %"}]
    rules = alt.Chart(frame(marks)).mark_rule(strokeDash=[4, 3], color="#d62728").encode(y="y:Q")
    words = alt.Chart(frame(marks)).mark_text(align="left", dx=4, dy=-6, color="#d62728")
    said = words.encode(y="y:Q", x=alt.datum(150), text="what:N")
    return alt.layer(bars, total, rules, said).properties(width=520, height=240)


def over_time(states: list[State], field: str, scale: float) -> list[dict[str, Any]]:
    """The value of each state, as a step over time; gaps where the link is down."""
    rows: list[dict[str, Any]] = []
    for s in states:
        value = getattr(s, field)
        down = s.lost or s.rate_bps == 0
        for t in (s.start_ns, s.end_ns):
            rows.append({"t": t / SECOND, "value": None if down or value is None else value / scale})
    return rows


def handover() -> Any:
    """Rate and delay of slots with a gap at the beginning of each."""
    slots: Slots = parse(Slots, {"model": "slots", "gap": "400 ms"}, "slots")
    states = list(slots.states(120 * SECOND, 1))
    charts = []
    for field, title, scale in (("rate_bps", "Rate [Mbit/s]", 1e6), ("delay_ns", "Delay [ms]", 1e6)):
        line = alt.Chart(frame(over_time(states, field, scale))).mark_line(invalid="break-paths-show-domains")
        x = alt.X("t:Q", title="Time [s]")
        charts.append(line.encode(x=x, y=alt.Y("value:Q", title=title)).properties(width=520, height=110))
    return alt.vconcat(*charts)


def lms() -> Any:
    """How often the signal is below a level: Lutz's two states, Rayleigh and Rice."""
    good, bad = lutz(0.4, rice_db=10.0, mean_db=-10.0, sigma_db=0.0, bad_length_m=8.0)
    model: Lms = parse(
        Lms, {"model": "lms", "states": [good, bad], "margin_db": 6.0, "speed": "10 m/s", "step": "5 ms"}, "lms"
    )
    levels = np.arange(-30.0, 6.0, 1.5)
    below = np.zeros((2, len(levels)))
    total = np.zeros(2)
    for start, end, state, db in model.fades(600 * SECOND, 1):
        total[state] += end - start
        below[state] += (end - start) * (db < levels)
    rows: list[dict[str, Any]] = []
    names = ("good (Rice, 10 dB)", "bad (Rayleigh, -10 dB)")
    for state, name in enumerate(names):
        for level, count in zip(levels, below[state], strict=True):
            rows.append({"db": level, "share": count / total[state], "case": name, "source": MODEL})
            rows.append({"db": level, "share": _below(level - 0.25, state), "case": name, "source": THEORY})
    x = alt.X("db:Q", title="Power relative to the unshadowed direct part [dB]")
    y = alt.Y("share:Q", title="Share of time below", scale=alt.Scale(type="log", domain=[1e-3, 1], clamp=True))
    return lines_and_points([r for r in rows if r["share"] >= MIN_SHARE], x, y).properties(width=520, height=240)


def _below(db: float, state: int) -> float:
    power = 10 ** (db / 10)
    if state == 1:
        return max(-math.expm1(-power / 0.1), 1e-6)
    y = (np.arange(4000) + 0.5) * power / 4000
    density = np.exp(-y / 0.1 - 10) * np.i0(2 * np.sqrt(10 * y / 0.1)) / 0.1
    return max(float(density.sum() * power / 4000), 1e-6)


def signal() -> Any:
    """Bit error rates of the modulations."""
    rows = [
        {"db": db / 4, "ber": bit_error_rate(name, db / 4), "case": name}
        for name in ("bpsk", "8psk", "16qam", "64qam", "fsk", "dbpsk")
        for db in range(73)
        if bit_error_rate(name, db / 4) > 1e-8
    ]
    y = alt.Y("ber:Q", title="Bit error rate", scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e"))
    x = alt.X("db:Q", title="Eb/N0 [dB]")
    return (
        alt.Chart(frame(rows))
        .mark_line()
        .encode(x=x, y=y, color=alt.Color("case:N", title=None))
        .properties(width=520, height=260)
    )


def track(folder: Path) -> Any:
    """A UAV that flies past: delay and elevation."""
    lines = "\n".join(f"{t},0.0,{-0.05 + 0.0005 * t},1500" for t in range(201))
    (folder / "uav.csv").write_text(f"t_s,latitude,longitude,altitude_m\n{lines}\n")
    data = {"model": "track", "near": {"latitude": 0.0, "longitude": 0.0}, "far": {"file": "uav.csv"}, "step": "1 s"}
    model: Track = parse(Track, data, "track", folder)
    rows = [
        {"t": at.t_ns / SECOND, "delay": at.delay_ns / 1e3, "elevation": math.degrees(at.elevation)}
        for at in model.geometry(200 * SECOND)
    ]
    charts = [
        alt.Chart(frame(rows)).mark_line().encode(
            x=alt.X("t:Q", title="Time [s]"), y=alt.Y(f"{name}:Q", title=title)
        ).properties(width=520, height=110)
        for name, title in (("delay", "Delay [us]"), ("elevation", "Elevation [degrees]"))
    ]  # fmt: skip
    return alt.vconcat(*charts)


def track_street(folder: Path) -> Any:
    """A walk round a block under a GEO in the south-east: where houses hide it."""
    corners = [(0.0, 0.0), (0.0, 200.0), (200.0, 200.0), (200.0, 0.0), (0.0, 0.0)]
    rows = [f"{100 * i},{45 + north / 111_132!r},{13 + east / 78_847!r},0" for i, (east, north) in enumerate(corners)]
    (folder / "walk.csv").write_text("\n".join(["t_s,latitude,longitude,altitude_m", *rows]) + "\n")
    data = {"model": "track", "near": {"file": "walk.csv"}, "far": {"geo": 28.0}, "street": {}, "step": "250 ms"}
    model: Track = parse(Track, data, "track", folder)
    near = model.near.poses(400 * SECOND)
    points = []
    for at in model.geometry(400 * SECOND, seed=3):
        place = near(at.t_ns).place
        if place is not None:
            east, north = (place.longitude - 13) * 78_847, (place.latitude - 45) * 111_132
            points.append({"east": east, "north": north, "case": "hidden" if at.shadowed else "clear"})
    return (
        alt.Chart(frame(points))
        .mark_circle(size=22, opacity=1)
        .encode(
            x=alt.X("east:Q", title="East [m]"),
            y=alt.Y("north:Q", title="North [m]"),
            color=alt.Color("case:N", title=None),
        )
        .properties(width=300, height=300)
    )


def main() -> None:
    """Write every picture."""
    import tempfile

    FOLDER.mkdir(parents=True, exist_ok=True)
    for draw in (bernoulli, ber, markov, gilbert_elliott, street, uav, handover, lms, signal, budget, sky, protect):
        draw().save(FOLDER / f"{draw.__name__}.svg")
    with tempfile.TemporaryDirectory() as folder:
        track(Path(folder)).save(FOLDER / "track.svg")
        track_street(Path(folder)).save(FOLDER / "track-street.svg")


if __name__ == "__main__":
    main()
