"""What the applications experienced and what shared the path, from the rows of `runs`, as rows of `findings`.

Depends on tables and the scenario's keys, not on the engine. Means are over the seeds, as in `compare`.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hindflight.channels.models.losses import NoLoss
from hindflight.replay.experiment.compare import Interval, mean_interval
from hindflight.replay.scenario.flows import STACK, Flow
from hindflight.replay.scenario.model import Scenario
from hindflight.replay.scenario.proxies import JOIN, StackLayers
from hindflight.replay.scenario.reference import table_text
from hindflight.toolkit.schema import FINGERPRINT, leg_metric, run_subject
from hindflight.toolkit.units import PACKETS, SIZE, counted, format_rate, format_time

Run = Mapping[str, Any]
Row = dict[str, Any]

APPLICATION = (
    ("application_delay_p50", "app_delay_p50_ns", "ns"),
    ("application_delay_p95", "app_delay_p95_ns", "ns"),
    ("application_delay_p99", "app_delay_p99_ns", "ns"),
    ("application_delay_max", "app_delay_max_ns", "ns"),
    ("jitter", "jitter_ns", "ns"),
    ("stalls", "stalls", ""),
    ("stalled_time", "stalled_ns", "ns"),
    ("pages", "pages", ""),
    ("page_load_p50", "page_load_p50_ns", "ns"),
    ("page_load_p95", "page_load_p95_ns", "ns"),
)
"""Metric, column of `runs` and unit of what an application sees; null where it does not apply."""

KINDS = {
    "split": "splits the connection",
    "ack_filter": "removes ACKs that newer ones cover from the queue, does not split",
    "snoop": "keeps segments and sends lost ones again, does not split",
    "spoofing": "acknowledges on behalf of the receiver, does not split",
    "arq": "sends lost packets again between two gateways, does not split",
    "fec": "adds repair packets between two gateways, does not split",
}
"""What each kind of proxy does."""

LOSSES = ("channel_losses", "queue_losses", "aqm_losses", "outage_losses")
DATAGRAMS = "udp"
"""Variant of the rows that are no TCP flow."""


def traffic_findings(runs: Sequence[Run]) -> list[Row]:
    """Return what the application of the flow under test experienced (section `what_if`) and each other flow (section
    `sharing`).

    Where several TCP flows share the path also Jain's index of their goodputs, (Σx)² / (n Σx²).
    """
    compared = [run for run in runs if run["purpose"] == "what_if"]
    subjects = {
        run["run_id"]: run_subject(run["variant"], run["proxy"]) for run in compared if run["role"] == "under_test"
    }
    rows = []
    for subject, mine in _by_subject(compared, subjects).items():
        under_test = [run for run in mine if run["role"] == "under_test"]
        rows += _means("what_if", subject, under_test, APPLICATION)
        fairness = [index for shares in _tcp_goodputs(mine) if (index := jain_index(shares)) is not None]
        if fairness:
            rows.append(_finding("what_if", (subject, "jain_index"), mean_interval(fairness), ""))
        for flow in dict.fromkeys(run["flow"] for run in mine if len(mine) > len(under_test)):
            own = [run for run in mine if run["flow"] == flow]
            name = f"{subject}: {flow} ({own[0]['variant']})"
            rows += _means("sharing", name, own, (("goodput", "goodput_bps", "bit/s"), *APPLICATION))
            lost = [
                100 * sum(run[cause] for cause in LOSSES) / run["segments_out"] for run in own if run["segments_out"]
            ]
            if lost:
                rows.append(_finding("sharing", (name, "lost_packets"), mean_interval(lost), "%"))
            if any(run["ecn_marks"] for run in own):
                rows += _means("sharing", name, own, (("ecn_marks", "ecn_marks", ""),))
            if refused := sum(bool(run.get("proxy_refused")) for run in own):
                said = f"{name}: a proxy that was at its limit refused it in {refused} of {counted(len(own), 'run')}."
                count = Interval(float(refused), None, None)
                rows.append({**_finding("sharing", (name, "refused"), count, ""), "text": said})
            if reset := sum(run["reset_ns"] is not None for run in own):
                rows.append(_finding("sharing", (name, "resets"), Interval(float(reset), None, None), ""))
    return rows


def jain_index(shares: Sequence[float]) -> float | None:
    """Return Jain's fairness index of `shares`: 1 if all are equal, 1/n if one has all; None for less than two."""
    squares = sum(share * share for share in shares)
    if len(shares) < 2 or squares == 0:
        return None
    return sum(shares) ** 2 / (len(shares) * squares)


def setup_findings(scenario: Scenario, profiles: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Return the profile of each TCP flow and what differs from it, the losses of the links, a fingerprint of all other
    keys, the place, cache and other keys of each proxy, and where the legs of a chain begin (section `setup`).

    `profiles` holds the parameters of each profile by the engine's names.
    """
    flows: list[tuple[str, Flow]] = [("flow", scenario.flow), *((flow.name, flow) for flow in scenario.flows)]
    rows = []
    for name, flow in flows:
        rows.append(_setup_row(name, "profile", flow.profile))
        own = profiles[flow.profile]
        stack = StackLayers(flow).engine()
        for key, parameter in STACK.items():
            if parameter in stack and stack[parameter] != own[parameter]:
                text = f"{_value_text(parameter, stack[parameter])} instead of {_value_text(parameter, own[parameter])}"
                rows.append(_setup_row(name, key, text))
    fingerprint = _setup_row("scenario", FINGERPRINT, _fingerprint_without_losses(scenario))
    return [*rows, *_loss_rows(scenario), fingerprint, *_proxy_rows(scenario)]


def _fingerprint_without_losses(scenario: Scenario) -> str:
    """Return 64 bits of a hash of all that a scenario says but its name, its seeds and the loss models of its links. A
    rate over time counts by what its file holds, not by the file's name.

    Scenarios with the same fingerprint differ in their losses at most, so their results are a sweep of losses.
    """
    document = scenario.model_dump(mode="json", warnings=False, exclude={"name", "keep", "unknowns"})
    for key in ("seeds", "first_seed"):
        document["compare"].pop(key, None)
    for link in document["links"]:
        for direction in (link, link["reverse"] or {}):
            direction.pop("loss", None)
            if direction.get("rate_file") is not None:
                direction["rate_file"] = scenario.rate_trace(direction["rate_file"]).config()
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


def _loss_rows(scenario: Scenario) -> list[Row]:
    """Return the loss model of each link that has one, in each direction that has its own."""
    rows = []
    for link in scenario.links:
        for metric, loss in (("loss", link.forward.loss), ("reverse_loss", link.backward.loss)):
            if not isinstance(loss, NoLoss):
                keys = [key for key in type(loss).model_fields if getattr(loss, key) is not None]
                rows.append(_setup_row(link.name, metric, table_text(loss, keys)))
    return rows


def _proxy_rows(scenario: Scenario) -> list[Row]:
    """Return node, kind, cache and policy of each proxy; the policy is all other keys that are given."""
    rows = []
    for proxy in scenario.proxy:
        rows.append(_setup_row(proxy.name, "node", proxy.node))
        rows.append(_setup_row(proxy.name, "kind", KINDS[proxy.kind]))
        if (size := proxy.receive_buffer) is not None:
            value, unit = (size.pkts, "pkts") if size.pkts is not None else (size.size_bytes, "B")
            text = f"{value} {unit}" if unit == "pkts" else SIZE.write(float(value or 0))
            rows.append({**_setup_row(proxy.name, "cache", text), "value": float(value or 0), "unit": unit})
        left_out = {"name", "node", "receive_buffer"}
        given = [key for key in type(proxy).model_fields if key in proxy.model_fields_set - left_out]
        if given:
            rows.append(_setup_row(proxy.name, "policy", table_text(proxy, given)))
    return [*rows, *_leg_rows(scenario)]


def _leg_rows(scenario: Scenario) -> list[Row]:
    """Return at which proxy each leg behind the first begins, for chains that name others, too, or in another order."""
    rows = []
    for chain in scenario.compare.proxies:
        legs = [proxy.name for proxy in scenario.proxies_of().chain(chain) if proxy.begins_leg]
        if legs != chain.split(JOIN):
            rows += [_setup_row(chain, leg_metric(leg), name) for leg, name in enumerate(legs, 1)]
    return rows


def _by_subject(runs: Iterable[Run], subjects: Mapping[int, str]) -> dict[str, list[Run]]:
    """Return the runs of each subject: those over the seeds, or, where there are none, the one as captured."""
    grouped: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        grouped[subjects[run["run_id"]]].append(run)
    return {
        subject: [run for run in mine if run["channel_mode"] != "replayed"] or mine for subject, mine in grouped.items()
    }


def _tcp_goodputs(runs: Iterable[Run]) -> list[list[float]]:
    shares: dict[int, list[float]] = defaultdict(list)
    for run in runs:
        if run["variant"] != DATAGRAMS:
            shares[run["run_id"]].append(run["goodput_bps"])
    return list(shares.values())


def _means(section: str, subject: str, runs: Sequence[Run], metrics: Iterable[tuple[str, str, str]]) -> list[Row]:
    rows = []
    for metric, column, unit in metrics:
        values = [float(run[column]) for run in runs if run[column] is not None]
        if values:
            rows.append(_finding(section, (subject, metric), mean_interval(values), unit))
    return rows


def _finding(section: str, what: tuple[str, str], interval: Interval, unit: str) -> Row:
    subject, metric = what
    return {
        "section": section,
        "subject": subject,
        "metric": metric,
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "unit": unit,
        "verdict": "info",
        "text": "",
    }


def _setup_row(flow: str, parameter: str, text: str) -> Row:
    return {"section": "setup", "subject": flow, "metric": parameter, "unit": "", "verdict": "info", "text": text}


_WRITTEN = (("_ns", format_time), ("_bps", format_rate), ("_bytes", SIZE.write), ("_pkts", PACKETS.write))


def _value_text(parameter: str, value: object) -> str:
    """Return a value of the engine as text with its unit."""
    match value:
        case None:
            return "none"
        case bool():
            return "on" if value else "off"
        case int() | float():
            write = next((write for ending, write in _WRITTEN if parameter.endswith(ending)), "{:.12g}".format)
            return write(value)
        case _:
            return str(value)
