"""Reads a recorded run of the Linux stack over an emulated link: scenario.json, link.csv.xz, tcpinfo*.csv.xz.

Depends on the files, not on the engine. All times are made relative to the arrival of the first SYN at the emulator,
from which the schedule of the link counts too; sequence numbers to the SYN (0), so that data starts at 1.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hindflight.toolkit.errors import LogError
from validation.ticks import since_step_ns, timeouts, unexplained

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Integers = npt.NDArray[np.int64]

SYN = 2
"""TCP flag."""

FATES = {
    "delivered": "delivered",
    "unfinished": "delivered",
    "dropped_loss": "channel",
    "dropped_queue": "queue",
    "dropped_outage": "outage",
}
"""The link log's word, and the engine's; what had not arrived when the log ended was not dropped either."""


@dataclass(frozen=True, slots=True)
class Packets:
    """The data packets of one flow in the order in which they left the sender, retransmissions included."""

    t_ns: Integers
    seq: Integers
    end: Integers
    fate: list[str]


@dataclass(frozen=True, slots=True)
class KernelFlow:
    """One flow: its SYN came to the link at `syn_ns`.

    `goodput_bps` is what the application had by `end_ns`, over `start_ns` to `end_ns`.

    `first_write_ns` went by between the SYN and the first data, but for what the hosts and the emulator took for the
    handshake beyond the link's own time, which a model of the link does not have. `acks_ns` is when each ACK came.
    `tcp_info` holds the columns of TCP_INFO by name, `t_ns` made relative; None where the run comes without.
    """

    variant: str
    syn_ns: int
    start_ns: int
    end_ns: int
    goodput_bps: float
    rtos: int
    smss_bytes: int
    first_write_ns: int
    packets: Packets
    acks_ns: Integers
    tcp_info: dict[str, Integers] | None

    @property
    def first_data_ns(self) -> int:
        """Time between the SYN and the first data."""
        return int(self.packets.t_ns[0]) - self.syn_ns


@dataclass(frozen=True, slots=True)
class KernelRun:
    """One run. `lost` are the positions, from 0, at which the loss stage took a data packet: packets that the queue
    dropped never reached it, all flows count together. `acks_lost` are those of the ACK direction, where every packet
    counts. `late_ns` is by how much the emulator failed the link model's time, for the data and for the ACK direction,
    packet by packet as they passed its loss stage. `since_step_ns` is how long before the first SYN the hosts' clock
    made a step (see `ticks`). `sysctl` are both hosts' settings by name."""

    name: str
    params: Mapping[str, Any]
    sysctl: Mapping[str, str]
    flows: tuple[KernelFlow, ...]
    lost: tuple[int, ...]
    acks_lost: tuple[int, ...]
    late_ns: tuple[list[int], list[int]]
    since_step_ns: int


def find_runs(folder: Path) -> list[Path]:
    """Return the folders of `folder` that hold a run, or `folder` itself if it is one; LogError if there is none."""
    if not folder.is_dir():
        raise LogError(f"no such folder {folder}", "give a folder of recorded runs, each with its scenario.json")
    runs = [folder] if _is_run(folder) else sorted(path for path in folder.iterdir() if _is_run(path))
    if not runs:
        raise LogError(f"{folder} holds no recorded run", "a run is a folder with scenario.json and link.csv.xz")
    return runs


def _is_run(folder: Path) -> bool:
    return (folder / "scenario.json").is_file() and (folder / "link.csv.xz").is_file()


def read_run(folder: Path) -> KernelRun:
    """Read one run; LogError if a file is damaged or lacks what is needed."""
    try:
        scenario = json.loads((folder / "scenario.json").read_text())
        link = read_csv(folder / "link.csv.xz")
        t0_ns = scenario["t0_ns"]
        flows = tuple(_flow(folder, described, link, t0_ns) for described in scenario["flows"])
        described = zip(scenario["flows"], flows, strict=True)
        late = _late_ns(link, "data"), _late_ns(link, "ack")
        return KernelRun(
            name=folder.name,
            params=scenario["params"],
            sysctl=scenario.get("sysctl", {}),
            flows=flows,
            lost=_lost_positions(_data(link)),
            acks_lost=_lost_positions(link.filter(_is(link, "ack"))),
            late_ns=late,
            since_step_ns=_since_step_ns(link, t0_ns, {flow["sport"]: own for flow, own in described}),
        )
    except (KeyError, ValueError, lzma.LZMAError, EOFError) as error:
        raise LogError(f"{folder}: not a whole recorded run ({error})") from error


def read_csv(path: Path) -> pa.Table:
    """Read a CSV file compressed by xz."""
    from pyarrow import csv

    with lzma.open(path) as file:
        return csv.read_csv(file)


def _flow(folder: Path, described: Mapping[str, Any], link: pa.Table, t0_ns: int) -> KernelFlow:
    info = folder / described["tcpinfo"]
    syn_ns, packets = _packets(link, described["sport"], t0_ns)
    return KernelFlow(
        variant=described["cc"],
        syn_ns=syn_ns,
        start_ns=described["t_start_ns"] - t0_ns,
        end_ns=described["t_end_ns"] - t0_ns,
        goodput_bps=described["goodput_kbps"] * 1e3,
        rtos=described["rto_count"],
        smss_bytes=described["snd_mss"],
        first_write_ns=int(packets.t_ns[0]) - syn_ns - _handshake_late_ns(link, described["sport"]),
        packets=packets,
        acks_ns=_acks_ns(link, described["sport"], t0_ns),
        tcp_info=_tcp_info(info, t0_ns) if info.is_file() else None,
    )


def _packets(link: pa.Table, sport: int, t0_ns: int) -> tuple[int, Packets]:
    """Return when the SYN of the flow from port `sport` came, and its data packets."""
    import pyarrow.compute as pc

    sent = link.filter(pc.and_(pc.equal(link["dir"], "data"), pc.equal(link["sport"], sport)))
    syns = sent.filter(pc.not_equal(pc.bit_wise_and(sent["flags"], SYN), 0))
    if syns.num_rows == 0:
        raise ValueError(f"the link's log has no SYN from port {sport}")
    data = sent.filter(pc.greater(sent["plen"], 0))
    # Runs of a minute stay far below 2^32 octets: relative to the SYN no number wraps twice.
    seq = (data["seq"].to_numpy() - syns["seq"][0].as_py()) % (1 << 32)
    return syns["t_arr_ns"][0].as_py() - t0_ns, Packets(
        t_ns=data["t_arr_ns"].to_numpy() - t0_ns,
        seq=seq,
        end=seq + data["plen"].to_numpy(),
        fate=[FATES[fate] for fate in data["fate"].to_pylist()],
    )


def _handshake_late_ns(link: pa.Table, sport: int) -> int:
    """By how much the ACK that ended the handshake came later than the link alone explains; 0 where a segment of the
    handshake was repeated."""
    import pyarrow.compute as pc

    ends = pc.if_else(_is(link, "data"), link["sport"], link["dport"])
    empty = link.filter(pc.and_(pc.equal(ends, sport), pc.equal(link["plen"], 0))).slice(0, 3).to_pylist()
    kinds = [(row["dir"], row["flags"] & SYN, row["fate"]) for row in empty]
    if kinds != [("data", SYN, "delivered"), ("ack", SYN, "delivered"), ("data", 0, "delivered")]:
        return 0
    syn, syn_ack, ack = empty
    passed = [row["t_dep_ns"] - row["dep_err_ns"] for row in (syn, syn_ack)]
    return int(syn_ack["t_arr_ns"] - passed[0] + ack["t_arr_ns"] - passed[1])


def _acks_ns(link: pa.Table, sport: int, t0_ns: int) -> Integers:
    import pyarrow.compute as pc

    own = pc.and_(_is(link, "ack"), pc.equal(link["dport"], sport))
    came = link.filter(pc.and_(own, pc.equal(link["fate"], "delivered")))
    return np.sort(came["t_dep_ns"].to_numpy() - t0_ns)


def _late_ns(link: pa.Table, direction: str) -> list[int]:
    import pyarrow.compute as pc

    own = link.filter(_is(link, direction))
    reached = pc.and_(pc.not_equal(own["fate"], "dropped_queue"), pc.not_equal(own["fate"], "dropped_loss"))
    passed = own.filter(reached)
    return [max(0, late) for late in passed["dep_err_ns"].to_pylist()]


def _since_step_ns(link: pa.Table, t0_ns: int, flows: Mapping[int, KernelFlow]) -> int:
    """How long before the first SYN the hosts' clock made a step, by the timers of `flows`; the keys are the ports."""
    import pyarrow.compute as pc

    came = link.filter(pc.and_(_is(link, "data"), pc.equal(link["fate"], "delivered")))["t_dep_ns"].to_numpy()
    pure = link.filter(pc.and_(_is(link, "ack"), pc.equal(link["plen"], 0)))
    acks, fired = [], [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for sport, flow in flows.items():
        own = pure.filter(pc.equal(pure["dport"], sport))
        acked = (own["ack"].to_numpy() - own["ack"].to_numpy()[:1]) % (1 << 32)
        acks.append(unexplained(own["t_arr_ns"].to_numpy()[is_new(acked, acked + 1)] - t0_ns, np.sort(came) - t0_ns))
        if flow.tcp_info is not None:
            packets = flow.packets
            fired.append(timeouts(flow.tcp_info, packets.t_ns[~is_new(packets.seq, packets.end)]))
    at_ns, rtos_ns = (np.concatenate(columns) for columns in zip(*fired, strict=True))
    return since_step_ns(at_ns, rtos_ns, np.concatenate(acks))


def is_new(seq: Integers, end: Integers) -> npt.NDArray[np.bool_]:
    """Mark packets that carry no octet sent before, where nothing overtakes between the sender and the record."""
    highest = np.maximum.accumulate(np.concatenate([[0], end]))[:-1]
    return np.asarray(seq >= highest, bool)


def _is(link: pa.Table, direction: str) -> pa.Array:
    import pyarrow.compute as pc

    return pc.equal(link["dir"], direction)


def _data(link: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    return link.filter(pc.and_(_is(link, "data"), pc.greater(link["plen"], 0)))


def _lost_positions(packets: pa.Table) -> tuple[int, ...]:
    """Positions at the loss stage: a queue first in, first out lets packets leave in the order of arrival."""
    import pyarrow.compute as pc

    reached = packets.filter(pc.not_equal(packets["fate"], "dropped_queue"))
    lost = pc.equal(reached["fate"], "dropped_loss").to_numpy()
    return tuple(int(position) for position in np.flatnonzero(lost))


def _tcp_info(path: Path, t0_ns: int) -> dict[str, Integers]:
    table = read_csv(path)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    columns["t_ns"] = columns["t_ns"] - t0_ns
    return columns
