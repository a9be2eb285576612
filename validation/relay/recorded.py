"""Reads a recorded run of two connections joined by a relay: each leg as a recorded run, and what the relay knows.

All times count from the first SYN of leg 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hindflight.toolkit.errors import LogError
from validation.recorded import KernelFlow, KernelRun, read_run
from validation.relay.links import Leg
from validation.relay.links import Path as Drawn

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RelayRun:
    """One run. `link_t0_ns` is when each leg's link saw its first SYN, from which its schedule counts.

    `given` are the sizes of buffers that the relay set, `first` the memory of its sockets when both were connected.
    """

    name: str
    legs: tuple[KernelRun, KernelRun]
    link_t0_ns: tuple[int, int]
    given: Mapping[str, int]
    first: Mapping[str, int]

    @property
    def flows(self) -> tuple[KernelFlow, KernelFlow]:
        """The connection of each leg."""
        return self.legs[0].flows[0], self.legs[1].flows[0]


def find_relay_runs(folder: Path) -> list[Path]:
    """Return the folders of `folder` that hold a run, or `folder` itself if it is one; LogError if there is none."""
    if (folder / "relay.json").is_file():
        return [folder]
    found = sorted(path.parent for path in folder.glob("*/relay.json"))
    if not found:
        raise LogError(f"{folder} holds no recorded run of a relay", "a run is a folder with relay.json, leg0 and leg1")
    return found


def read_drawn(folder: Path) -> tuple[Drawn, int]:
    """Return the path and the seed of losses that a run was recorded with; LogError if the file does not tell."""
    try:
        relay = json.loads((folder / "relay.json").read_text())
        drawn = relay["path"]
        legs = [Leg(**{**leg, "events": tuple(map(tuple, leg["events"]))}) for leg in drawn["legs"]]
        return Drawn(drawn["name"], (legs[0], legs[1]), drawn["buffers"], drawn["duration_s"]), relay["seed"]
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise LogError(f"{folder}: not a whole recorded run of a relay ({error})", "record it again") from error


def read_relay_run(folder: Path) -> RelayRun:
    """Read one run; LogError if a file is damaged or lacks what is needed."""
    try:
        relay = json.loads((folder / "relay.json").read_text())
        starts = [json.loads((folder / f"leg{at}" / "scenario.json").read_text()) for at in range(2)]
        t0_ns = [start["link_t0_ns"] - start["t0_ns"] for start in starts]
        legs = read_run(folder / "leg0"), read_run(folder / "leg1")
        return RelayRun(folder.name, legs, (t0_ns[0], t0_ns[1]), relay["buffers"], relay["first"])
    except (KeyError, ValueError, OSError) as error:
        raise LogError(f"{folder}: not a whole recorded run of a relay ({error})", "record it again") from error


def held_bytes(flow: KernelFlow) -> tuple[Integers, Integers]:
    """Return when the relay was asked, and the octets that it had acknowledged and that were not acknowledged onward.

    They lie in its receiving socket, in the pipe and in its sending socket; `flow` is that of leg 1.
    """
    info = flow.tcp_info
    if info is None:
        raise LogError("the leg onward has no tcpinfo.csv.xz", "record it again")
    return info["t_ns"], info["inq"] + info["pipe"] + info["outq"]
