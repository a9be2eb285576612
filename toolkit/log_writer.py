"""Writes a kernel log into a workspace: each connection to its flow, part by part.

The log is read twice: first to see which connections it holds and which flows they are, then to write. How octets
become parts is in toolkit/logs.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass, field

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs import LogReading
from hindflight.toolkit.logs.issues import Issues
from hindflight.toolkit.logs.join import Flows, Match, estimate_clock, find_flow, own_flow
from hindflight.toolkit.logs.model import UTC, Connection, KernelLog
from hindflight.toolkit.logs.survey import Survey, survey
from hindflight.toolkit.schema import table_from_rows
from hindflight.toolkit.units import counted
from hindflight.toolkit.workspace import Transaction, Workspace

_NOTES = 3
"""Up to this many connections of one log are listed in its note."""


@dataclass(frozen=True, slots=True)
class Joining:
    """Where the logs of one command go: the flow and the offset of their clock, if given."""

    workspace: Workspace
    flow_id: int | None = None
    clock_offset_ns: int | None = None


@dataclass(slots=True)
class _Plan:
    """What becomes of one connection of the log."""

    match: Match
    writes_instruments: bool = True
    writes_variables: bool = True
    issues: Issues = field(default_factory=Issues)


def write_log(reading: LogReading, joining: Joining, transaction: Transaction, input_id: int) -> tuple[str, int]:
    """Write all of the log as input `input_id`; return a note of what was done, and the number of issues.

    LogError: the log holds no whole record, or a connection of it fits no flow.
    """
    found = survey(reading.parts())
    try:
        plans, notes = _plans(found, joining, transaction, input_id)
    except LogError as error:
        raise LogError(f"{reading.file.name}: {error}", error.hint) from error
    damaged = Issues()
    for part in reading.parts():
        plan = plans[part.key]
        for issue in part.issues:
            damaged.add(issue.record, issue.offset, issue.kind, issue.text)
        _write(part, plan, transaction)
    _note_receivers(plans, found, damaged)
    issues = [issue for each in (damaged, reading.file.issues) for issue in each.rows()]
    transaction.write("issues", table_from_rows("issues", [asdict(issue) | {"input_id": input_id} for issue in issues]))
    return "; ".join(notes), damaged.count() + reading.file.issues.count()


def _plans(
    found: dict[Hashable, Survey], joining: Joining, transaction: Transaction, input_id: int
) -> tuple[dict[Hashable, _Plan], list[str]]:
    """Find or make the flow of each connection, and say how."""
    flows = Flows(joining.workspace)
    offset_ns, notes = _clock_offset(found, flows, joining)
    plans: dict[Hashable, _Plan] = {}
    rows: list[dict[str, object]] = []
    joined = []
    for key, log in found.items():
        match = find_flow(log, flows, joining.flow_id, offset_ns)
        if match is not None:
            plans[key] = _Plan(match, match.sender)
        elif log.connection is not None:
            made = "made for it: no capture here holds this connection"
            plans[key] = _Plan(Match(transaction.new_flow_id(), True, made, offset_ns or 0), log.sends)
            rows.append(_row_of_own_flow(log, log.connection, plans[key], input_id))
        joined.append(f"{counted(log.rows, 'row')} to flow {plans[key].match.flow_id}: {plans[key].match.evidence}")
    if rows:
        transaction.write("flows", table_from_rows("flows", rows))
    senders = {plan.match.flow_id for plan in plans.values() if plan.writes_instruments}
    for plan in plans.values():
        plan.writes_variables = plan.writes_instruments or plan.match.flow_id not in senders
    return plans, [*notes, *(joined if len(joined) <= _NOTES else [f"{len(joined)} connections"])]


def _clock_offset(found: dict[Hashable, Survey], flows: Flows, joining: Joining) -> tuple[int | None, list[str]]:
    """What to add to the times of the log, where that is given or has to be estimated, and a note of it."""
    if joining.clock_offset_ns is not None:
        return joining.clock_offset_ns, [f"clock offset {joining.clock_offset_ns / 1e9:+.6f} s, as given"]
    if all(log.clock == UTC for log in found.values()):
        return None, []
    clock = estimate_clock(found.values(), flows, joining.flow_id)
    return (None, []) if clock is None else (clock.offset_ns, [str(clock)])


def _row_of_own_flow(log: Survey, connection: Connection, plan: _Plan, input_id: int) -> dict[str, object]:
    offset_ns = plan.match.offset_ns
    if log.clock != UTC and not offset_ns:
        text = f"no capture holds this connection, so its times still count from {log.clock}"
        plan.issues.add(0, 0, "log_clock", text)
    row = own_flow(log, connection, plan.match.flow_id, input_id)
    return row | {"start_ns": log.start_ns + offset_ns, "end_ns": log.end_ns + offset_ns}


def _write(part: KernelLog, plan: _Plan, transaction: Transaction) -> None:
    match = plan.match
    part = part.shifted(match.offset_ns).counted_from(match.iss)
    if part.cwnd_pkts is not None:
        if match.smss_bytes is not None:
            part = part.with_segments_of(match.smss_bytes)
        elif plan.writes_instruments and not plan.issues.count():
            text = "the log counts in segments and no capture shows their size: windows are in table variables alone"
            plan.issues.add(0, 0, "log_segment_size", text)
    if plan.writes_instruments:
        transaction.write("instruments", part.instruments(match.flow_id))
    if plan.writes_variables:
        transaction.write("variables", part.variables(match.flow_id))


def _note_receivers(plans: dict[Hashable, _Plan], found: dict[Hashable, Survey], issues: Issues) -> None:
    """Say which connections add no rows to `instruments`, and what their plans found."""
    for key, plan in plans.items():
        for issue in plan.issues.rows():
            issues.add(issue.record, issue.offset, issue.kind, issue.text)
        if not plan.writes_instruments:
            where = "its rows are in variables alone" if plan.writes_variables else "the log of the sender is here too"
            text = f"the logging host only received data on flow {plan.match.flow_id}: {where}"
            issues.add(0, 0, "log_of_receiver", f"{text} ({counted(found[key].rows, 'row')})")
