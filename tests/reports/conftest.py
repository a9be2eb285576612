"""Small synthetic tables: a captured flow with known losses, a kernel log, a self-check and what-if runs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hindflight.toolkit.schema import TABLES, run_subject, table_from_rows

START_NS = 1_795_246_137_000_000_000
RTT_NS = 500_000_000
MSS = 1000
SEGMENTS = 120
PER_ROUND = 10
LOST = {23: "channel", 24: "channel", 57: "queue", 91: "unknown"}
"""Segments, numbered from 0, whose first transmission is lost, and the cause."""

Rows = list[dict[str, object]]
Tables = dict[str, pa.Table]


def required(table: str, **given: object) -> dict[str, object]:
    """Return a row of `table` with zeros where a number is required, and `given`."""
    empty: dict[str, object] = {"bool": False, "text": "", "list_i64": [], "f64": 0.0}
    row = {c.name: empty.get(c.type, 0) for c in TABLES[table].columns if not c.nullable and c.type != "enum"}
    row.update({c.name: c.values[0] for c in TABLES[table].columns if c.type == "enum"})
    return {**row, **given}


def flow_segments(run_id: int = 0, flow_id: int = 1, start_ns: int = START_NS) -> Rows:
    """Return ten segments per round trip, each ACKed 0.5 ms after its round trip; lost segments are retransmitted."""
    rows: Rows = []

    def sent(number: int, t_ns: int, *, retransmission: bool) -> None:
        seq = 1 + number * MSS
        rows.append(
            required(
                "segments",
                run_id=run_id,
                flow_id=flow_id,
                t_ns=t_ns,
                direction="a2b",
                seq=seq,
                payload_bytes=MSS,
                ack=1,
                flags=16,
                retransmission=retransmission,
                flight_bytes=PER_ROUND * MSS,
            )
        )

    acked, waiting = 0, dict(LOST)
    for number in range(SEGMENTS):
        t = start_ns + RTT_NS + number // PER_ROUND * RTT_NS + number % PER_ROUND * 1_000_000
        sent(number, t, retransmission=False)
        if number in LOST:
            sent(number, t + RTT_NS, retransmission=True)
        else:
            hole = [n for n in waiting if n < number]
            acked = acked if hole else number + 1
            sack = [1 + number * MSS, 1 + (number + 1) * MSS] if hole else []
            rows.append(
                required(
                    "segments",
                    run_id=run_id,
                    flow_id=flow_id,
                    t_ns=t + RTT_NS + 500_000,
                    direction="b2a",
                    seq=1,
                    ack=1 + acked * MSS,
                    flags=16,
                    wnd_bytes=64_000,
                    sack=sack,
                    dup_ack=bool(hole),
                    rtt_ns=None if hole else RTT_NS + 500_000 + number * 10_000,
                )
            )
        for lost in [n for n in waiting if n <= number - PER_ROUND]:
            del waiting[lost]
    rows.sort(key=lambda row: int(str(row["t_ns"])))
    for record, row in enumerate(rows, 1):
        row["record"] = record
    return rows


def flow_row(rows: Rows, run_id: int = 0, flow_id: int = 1) -> dict[str, object]:
    times = [int(str(row["t_ns"])) for row in rows]
    return required(
        "flows",
        run_id=run_id,
        flow_id=flow_id,
        a_addr="192.0.2.1",
        a_port=40000,
        b_addr="2001:db8::2",
        b_port=5001,
        start_ns=START_NS if run_id == 0 else 0,
        end_ns=max(times),
        data_direction="a2b",
        vantage="sender",
        a2b_data_segments=SEGMENTS + len(LOST),
        a2b_retransmitted_segments=len(LOST),
        a2b_unique_bytes=SEGMENTS * MSS,
        a2b_rtt_min_ns=RTT_NS,
    )


def flow_instruments(source: str, run_id: int = 0, flow_id: int = 1, start_ns: int = START_NS) -> Rows:
    """Return a sawtooth of cwnd in steps of 50 ms, with a recovery in the middle."""
    rows: Rows = []
    for step in range(130):
        phase = "slow_start" if step < 20 else "recovery" if 40 <= step < 50 else "congestion_avoidance"
        cwnd = (10 + step % 40) * MSS
        rows.append(
            required(
                "instruments",
                run_id=run_id,
                flow_id=flow_id,
                t_ns=start_ns + RTT_NS + step * 50_000_000,
                source=source,
                phase=phase,
                cwnd_bytes=cwnd,
                ssthresh_bytes=None if step < 20 else 20 * MSS,
                smss_bytes=MSS,
                srtt_ns=RTT_NS + step * 100_000,
                snd_una=1 + step * 900,
            )
        )
    return rows


def flow_events(run_id: int = 0, flow_id: int = 1, start_ns: int = START_NS) -> Rows:
    rows: Rows = []
    for number, cause in LOST.items():
        t = start_ns + RTT_NS + number // PER_ROUND * RTT_NS + number % PER_ROUND * 1_000_000
        octets = {"seq_start": 1 + number * MSS, "seq_end": 1 + (number + 1) * MSS}
        same = {"run_id": run_id, "flow_id": flow_id, "direction": "a2b", **octets}
        rows.append(
            required("events", **same, t_ns=t, kind="loss", cause=cause, record=number, evidence=f"hole at {number}")
        )
        rows.append(required("events", **same, t_ns=t + RTT_NS, kind="retransmission", cause="fast"))
    outage = required(
        "events", run_id=run_id, flow_id=flow_id, t_ns=start_ns + 3 * RTT_NS, kind="outage", cause="outage"
    )
    return [*rows, {**outage, "end_ns": start_ns + 4 * RTT_NS}]


def run_row(run_id: int, variant: str, proxy: str, **given: object) -> dict[str, object]:
    row = required(
        "runs",
        run_id=run_id,
        scenario="geo",
        flow="flow",
        role="under_test",
        variant=variant,
        proxy=proxy,
        flow_id=1,
        duration_ns=6_500_000_000,
        purpose="what_if",
        channel_mode="replayed",
        seed=1,
        goodput_bps=150e3,
        rtt_p95_ns=RTT_NS,
        one_way_delay_p95_ns=RTT_NS // 2,
        channel_losses=2,
        reset_ns=None,
    )
    return {**row, **given}


def finding(section: str, subject: str = "", metric: str = "", **given: object) -> dict[str, object]:
    return {
        "verdict": "info",
        "unit": "",
        "text": "",
        **given,
        "section": section,
        "subject": subject,
        "metric": metric,
    }


def run_rows() -> Rows:
    rows = [run_row(1, "reno", "none", purpose="self_check"), run_row(2, "cubic", "none", purpose="self_check")]
    for variant in ("reno", "cubic"):
        for proxy in ("none", "gateway"):
            rows.append(run_row(len(rows) + 1, variant, proxy))
            for seed in (1, 2, 3):
                given = {"channel_mode": "resampled", "seed": seed, "goodput_bps": 140e3 + 1e3 * seed}
                rows.append(run_row(len(rows) + 1, variant, proxy, **given))
    return rows


def finding_rows() -> Rows:
    rows = [
        finding("summary", text="A sender moved 120 kB in 6.5 s."),
        finding("summary", text="The channel took two segments."),
        finding("key_numbers", "flow 1", "goodput", value=147_692.0, unit="bit/s", text="acknowledged in order"),
        finding("key_numbers", "flow 1", "base RTT", value=5e8, low=4.9e8, high=5.1e8, unit="ns"),
        finding("self_check", "capture", "goodput", value=147_692.0, unit="bit/s"),
        finding("self_check", "reno", "goodput", value=150e3, unit="bit/s", verdict="pass", text="reno reproduces it."),
        finding("self_check", "cubic", "goodput", value=190e3, unit="bit/s", verdict="fail"),
        finding("what_happened", "flow 1", text="Two rounds lost segments."),
        finding("what_if", "path", verdict="unknown", text="The queue was never full, so its limit is a lower bound."),
        finding("unknown", "acks", text="Losses among the ACKs cannot be seen from here."),
    ]
    for variant in ("reno", "cubic"):
        for proxy in ("none", "gateway"):
            subject = run_subject(variant, proxy)
            rows.append(finding("what_if", subject, "goodput", value=142e3, low=141e3, high=143e3, unit="bit/s"))
            if subject != "reno":
                given = {"value": 5e3, "low": -1e3, "high": 11e3, "unit": "bit/s"}
                rows.append(finding("what_if", subject, "goodput_difference", **given))
    return rows


def whole_tables() -> Tables:
    """Return the tables of a captured flow with its log, a self-check and what-if runs."""
    captured, replayed = flow_segments(), flow_segments(1, start_ns=0)
    instruments = [*flow_instruments("tcp_info"), *flow_instruments("inferred")]
    for run_id in (1, 3, 7, 11, 15):
        instruments += flow_instruments("replay", run_id, start_ns=0)
    rows: dict[str, Rows] = {
        "segments": [*captured, *replayed],
        "flows": [flow_row(captured), flow_row(replayed, 1)],
        "instruments": instruments,
        "events": flow_events(),
        "channel": [],
        "runs": run_rows(),
        "findings": finding_rows(),
        "issues": [required("issues", record=7, kind="cut", text="the record ends early; it was left out")],
    }
    return {name: table_from_rows(name, table) for name, table in rows.items()}


@pytest.fixture(scope="session")
def tables() -> Tables:
    return whole_tables()
