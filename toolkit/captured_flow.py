"""One captured flow of a workspace: its rows of every table, found by the number that the user gives it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.errors import CaptureError, HindflightError
from hindflight.toolkit.sender_view.mark import described

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.toolkit.manifest import Input
    from hindflight.toolkit.workspace import Workspace

FLOW_TABLES = ("segments", "flows", "events", "instruments")


@dataclass(frozen=True, slots=True)
class Flow:
    """One captured flow of a workspace with its rows of each table; `number` is what the user calls it.

    `rebuilt` says how its capture was made from one at the receiver; "" for what was captured.
    """

    flow_id: int
    number: int
    row: dict[str, Any]
    tables: dict[str, pa.Table]
    rebuilt: str = ""

    @property
    def direction(self) -> str:
        """The direction of its data."""
        return str(self.row["data_direction"])


def read_flow(workspace: Workspace, flow_id: int | None, inputs: Collection[int] | None = None) -> Flow:
    """Read one captured flow; without a number the one with most data, each octet of its fuller direction counted once.
    HindflightError if there is no such flow.

    `flow_id` is the number in the workspace. With `inputs` (input ids) only their flows are looked at, and `flow_id`
    counts from 1 among them, as `hindflight flows` numbers the flows of a capture by itself.
    """
    import pyarrow.compute as pc

    flows = workspace.table("flows", where=pc.field("run_id") == 0).sort_by("flow_id").to_pylist()
    if inputs is not None:
        flows = [row for row in flows if row["input_id"] in inputs]
    numbers = {row["flow_id"] if inputs is None else at: row for at, row in enumerate(flows, 1)}
    numbers = {n: row for n, row in numbers.items() if row["a2b_data_segments"] + row["b2a_data_segments"] > 0}
    where = ", ".join(entry.name for entry in workspace.inputs if inputs is None or entry.input_id in inputs)
    if not numbers:
        raise HindflightError(f"{where} has no flow that carries data", "see what is in it: hindflight info CAPTURE")
    if flow_id is None:
        flow_id = max(numbers, key=lambda n: max(numbers[n]["a2b_unique_bytes"], numbers[n]["b2a_unique_bytes"]))
    if flow_id not in numbers:
        known = ", ".join(str(n) for n in list(numbers)[:10])
        raise HindflightError(f"{where} has no flow {flow_id} with data", f"flows with data: {known}")
    return _read(workspace, flow_id, numbers[flow_id])


def _read(workspace: Workspace, number: int, row: dict[str, Any]) -> Flow:
    import pyarrow.compute as pc

    here = (pc.field("run_id") == 0) & (pc.field("flow_id") == row["flow_id"])
    tables = {name: workspace.table(name, where=here) for name in FLOW_TABLES}
    _check_clock(tables["segments"])
    source = workspace.input(row["input_id"])
    rebuilt = described(source.rebuilt) if source.rebuilt else ""
    return Flow(row["flow_id"], number, row, tables, rebuilt)


MAX_BACK_NS, MAX_AHEAD_NS = 10**9, 86_400 * 10**9
"""Steps of the time between two segments of a flow, back and ahead, beyond which the clock was set meanwhile."""


def _check_clock(segments: pa.Table) -> None:
    """CaptureError if the clock of the capture was set within the flow: no delay across that place means anything."""
    import numpy as np

    t_ns = segments["t_ns"].to_numpy()
    steps = np.diff(t_ns)
    (places,) = np.nonzero((steps < -MAX_BACK_NS) | (steps > MAX_AHEAD_NS))
    if places.size:
        at = int(places[0])
        way = "runs back" if steps[at] < 0 else "jumps ahead"
        raise CaptureError(
            f"the clock {way} by {abs(int(steps[at])) / 1e9:.3f} s at record {segments['record'][at + 1].as_py()}",
            "read the part before or after it: hindflight ingest --from --to",
        )


def read_flows_on_path(workspace: Workspace, flow: Flow, min_share: float, max_flows: int) -> list[Flow]:
    """Read the other flows of the capture from the same sender or to the same receiver, those with most data first.

    At most `max_flows`, each with at least the share `min_share` of the data of `flow`; `number` counts the capture's
    flows from 1.
    """
    import pyarrow.compute as pc

    here = (pc.field("run_id") == 0) & (pc.field("input_id") == flow.row["input_id"])
    rows = list(enumerate(workspace.table("flows", where=here).sort_by("flow_id").to_pylist(), 1))
    sender, receiver = hosts(flow.row)
    found = [
        (number, row)
        for number, row in rows
        if row["flow_id"] != flow.flow_id
        and (hosts(row)[0] == sender or hosts(row)[1] == receiver)
        and _payload(row) >= min_share * _payload(flow.row)
    ]
    found.sort(key=lambda one: -_payload(one[1]))
    return [_read(workspace, number, row) for number, row in found[:max_flows]]


def hosts(row: dict[str, Any]) -> tuple[str, str]:
    """Return the addresses of the data sender and of the receiver."""
    return (row["a_addr"], row["b_addr"]) if row["data_direction"] == "a2b" else (row["b_addr"], row["a_addr"])


def _payload(row: dict[str, Any]) -> int:
    return int(row[f"{row['data_direction']}_payload_bytes"])


def place_of(workspace: Workspace, flow: Flow) -> int:
    """Return the number of the flow within its input, from 1: it is the same in every workspace."""
    import pyarrow.compute as pc

    here = (pc.field("run_id") == 0) & (pc.field("input_id") == flow.row["input_id"])
    ids = sorted(workspace.table("flows", ("flow_id", "run_id", "input_id"), here)["flow_id"].to_pylist())
    return ids.index(flow.flow_id) + 1


def input_of(workspace: Workspace, flow: Flow) -> Input:
    """Return the input that the flow was read from. WorkspaceError: the manifest does not list it."""
    return workspace.input(flow.row["input_id"])


def run_start_ns(workspace: Workspace, run_id: int = 0) -> int:
    """Return the time of the first TCP segment of a run, from which seconds count wherever they are shown or given."""
    import pyarrow.compute as pc

    columns = ["start_ns", "a2b_segments", "b2a_segments"]
    flows = workspace.table("flows", columns, pc.field("run_id") == run_id)
    # A flow that was made for a log has no segments, and its times may not count from 1970.
    captured = flows.filter(pc.greater(pc.add(flows["a2b_segments"], flows["b2a_segments"]), 0))
    start_ns = pc.min((captured if captured.num_rows else flows)["start_ns"]).as_py()
    return int(start_ns or 0)
