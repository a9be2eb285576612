"""The findings at the top of a report: a few plain sentences and the key numbers.

Composes what others computed (outcome, estimates, self-check, comparison) and computes no more than shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from hindflight.channels.estimate import Estimate, LinkStretch
from hindflight.channels.trace import Trace
from hindflight.replay.experiment.compare import Interval
from hindflight.replay.experiment.selfcheck import GOODPUT_BOUND, Candidate
from hindflight.replay.outcome import Outcome
from hindflight.toolkit.schema import DAMAGE_METRICS, run_subject
from hindflight.toolkit.units import counted, format_rate

METRICS = {
    "rate_bps": "bottleneck rate",
    "base_rtt_ns": "round-trip propagation",
    "min_rtt_ns": "minimum round-trip time",
    "queue_limit_pkts": "queue limit",
    "channel_loss_share": "channel loss",
}
"""Names of the estimates that are key numbers."""

FROM_BLOCKS = "; its interval is that of the parts of the flow, as in hindflight compare"


def key_numbers(
    captured: Outcome, estimates: Iterable[Estimate], intervals: Mapping[str, Interval] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of section `key_numbers`: what the flow achieved and what its link is like.

    `intervals` are those of the blocks of the flow, by metric.
    """
    blocks = intervals or {}
    retransmitted = f"{captured.retransmissions} of {captured.data_segments} data segments"
    rows = [
        {
            **_number(
                "goodput",
                captured.goodput_bps,
                "bit/s",
                f"acknowledged in order over {captured.duration_ns / 1e9:.1f} s"
                f"{FROM_BLOCKS if 'goodput' in blocks else ''}",
            ),
            **dict(zip(("low", "high"), goodput_ends(captured, blocks), strict=True)),
        },
        _number("retransmitted segments", captured.retransmissions, "", retransmitted),
        _number("retransmission timeouts", captured.rtos, "", ""),
    ]
    if "rtt" in blocks:
        rtt = blocks["rtt"]
        mean = _number("mean round-trip time", rtt.mean, "ns", f"over equal parts of the flow{FROM_BLOCKS}")
        rows.append({**mean, "low": rtt.low, "high": rtt.high})
    for estimate in estimates:
        if estimate.name not in METRICS:
            continue
        rows.append(
            {
                **_number(METRICS[estimate.name], estimate.value, estimate.unit, estimate.how),
                "low": estimate.low,
                "high": estimate.high,
                "verdict": "info" if estimate.known else "unknown",
            }
        )
    return rows


@dataclass(frozen=True, slots=True)
class CapturedSentences:
    """What else a summary says on a captured flow: rows on the flight, and on outages; and the intervals of its blocks
    by metric."""

    flight: Sequence[dict[str, Any]] = ()
    broken: Sequence[dict[str, Any]] = ()
    blocks: Mapping[str, Interval] = field(default_factory=dict)


def summary(
    captured: Outcome,
    trace: Trace,
    ranked: Sequence[Candidate],
    findings: Sequence[Mapping[str, Any]],
    runs: Sequence[Mapping[str, Any]],
    said: CapturedSentences,
) -> list[dict[str, Any]]:
    """Return the rows of section `summary`, one sentence each, in reading order, then those of section `unknown` that
    `said` has.

    `metric` names what a sentence is about (goodput, losses, self_check, what_if); a report links it to its chart.
    """
    by_name = {estimate.name: estimate for estimate in trace.estimates}
    rows = [
        _sentence(
            "capture", goodput_of_capture(captured, by_name.get("rate_bps"), trace.stretches, said.blocks), "goodput"
        ),
        _sentence("capture", losses_of_capture(trace), "losses"),
        *(row for row in said.flight if row["section"] == "summary"),
        *said.broken,
    ]
    if ranked:
        rows.append(_sentence("capture", _agreement_with_capture(ranked[0]), "self_check"))
    rows += [_sentence("capture", sentence, "what_if") for sentence in _what_if(findings, runs)]
    return [*rows, *(row for row in said.flight if row["section"] != "summary")]


def summary_without_capture(
    findings: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows of section `summary` of a replay without a captured flow."""
    under_test = [run for run in runs if run["purpose"] == "what_if" and run["role"] == "under_test"]
    subjects = {run_subject(run["variant"], run["proxy"]) for run in under_test}
    generated = all(run["channel_mode"] == "model" for run in under_test)
    channel = (
        "a channel generated from its model"
        if generated
        else "a captured channel, whose capture is not in this workspace"
    )
    tried, count = f"{counted(len(subjects), 'choice')} of variant and proxy", counted(len(under_test), "run")
    sentences = [f"Replayed without a capture: {tried} over {channel}, {count} in all."]
    sentences += _goodputs(findings)
    sentences += _what_if(findings, runs)
    return [_sentence("replay", sentence, "what_if") for sentence in sentences]


def _goodputs(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say between which goodputs the choices lie."""
    found = {
        row["subject"]: row["value"]
        for metric in ("goodput_as_captured", "goodput")  # The mean over the seeds, where there is one.
        for row in findings
        if row["section"] == "what_if" and row["metric"] == metric
    }
    if not found:
        return []
    ends = sorted(found, key=lambda subject: found[subject])
    shown = [f"{format_rate(found[subject])} ({subject})" for subject in dict.fromkeys((ends[0], ends[-1]))]
    return [f"Goodput {'of' if len(shown) == 1 else 'from'} {' to '.join(shown)}."]


def _sentence(subject: str, text: str, about: str) -> dict[str, Any]:
    return {"section": "summary", "subject": subject, "metric": about, "unit": "", "verdict": "info", "text": text}


def _number(metric: str, value: float | None, unit: str, text: str) -> dict[str, Any]:
    return {
        "section": "key_numbers",
        "subject": "capture",
        "metric": metric,
        "value": None if value is None else float(value),
        "unit": unit,
        "verdict": "info",
        "text": text,
    }


def goodput_ends(captured: Outcome, blocks: Mapping[str, Interval]) -> tuple[float | None, float | None]:
    """Return the 95 % interval of the goodput of a captured flow: as wide as that of its blocks, around its goodput."""
    found = blocks.get("goodput")
    if found is None or found.high is None:
        return None, None
    half = found.high - found.mean
    return max(captured.goodput_bps - half, 0.0), captured.goodput_bps + half


def goodput_of_capture(
    captured: Outcome,
    rate: Estimate | None,
    stretches: Sequence[LinkStretch] = (),
    blocks: Mapping[str, Interval] | None = None,
) -> str:
    """Return the sentence on what the captured flow achieved, and which share of the rate of its link that is.

    If the rate has steps, it is the mean over the stretches between them.
    """
    seconds, megabytes = captured.duration_ns / 1e9, captured.delivered_bytes / 1e6
    achieved = (
        f"In {seconds:.{0 if seconds >= 10 else 2}f} s the captured flow delivered {megabytes:.1f} MB: "
        f"{format_rate(captured.goodput_bps)}{_ends(*goodput_ends(captured, blocks or {}))} of payload"
    )
    if rate is None or rate.value is None:
        return f"{achieved}. This capture does not show the rate of its link."
    if not _steps_of_rate(stretches):
        ends = _ends(rate.low, rate.high) if rate.known else ""
        of_rate = f"{100 * captured.goodput_bps / rate.value:.0f} % of the {format_rate(rate.value)}{ends}"
        return f"{achieved}, {of_rate} that its bottleneck carries."
    mean_bps = _mean_rate_bps(stretches)
    if mean_bps is None:
        return f"{achieved}. The rate of its bottleneck changed, and this capture does not show all of its values."
    share = captured.goodput_bps / mean_bps
    return (
        f"{achieved}, {100 * share:.0f} % of what its bottleneck carries, whose rate changed: {format_rate(mean_bps)} "
        "on average."
    )


def _ends(low_bps: float | None, high_bps: float | None) -> str:
    """Return the 95 % interval of a rate in brackets, in one unit; empty where it has none, or is narrower than the
    digits that are shown."""
    if low_bps is None or high_bps is None:
        return ""
    low, high = format_rate(low_bps), format_rate(high_bps)
    return "" if low == high else f" (95 % interval {low.removesuffix(high[high.index(' ') :])} to {high})"


def _steps_of_rate(stretches: Sequence[LinkStretch]) -> bool:
    """Return whether the rates of two stretches differ by more than their intervals, or one is missing."""
    rates = [one.estimate("rate_bps") for one in stretches]
    some = [rate for rate in rates if rate.value is not None]
    return 0 < len(some) < len(rates) or any(one.excludes(other) for one, other in combinations(some, 2))


def _mean_rate_bps(stretches: Sequence[LinkStretch]) -> float | None:
    """Return the mean rate over the time of all stretches; None if that of one is not known."""
    rates = [(one.estimate("rate_bps"), one.end_ns - one.start_ns) for one in stretches]
    if any(rate.value is None or not rate.known for rate, _ in rates):
        return None
    return sum((rate.value or 0.0) * span for rate, span in rates) / sum(span for _, span in rates)


def losses_of_capture(trace: Trace) -> str:
    """Return the sentence on how many data packets were lost, by cause, and on what share the channel took."""
    counts = trace.counts
    lost, sent = counts.get("lost", 0), counts.get("data_packets", 0)
    if not lost:
        return f"None of its {sent:,} data packets was lost."
    causes = {
        "queue": "to a full queue",
        "channel": "to the channel",
        "outage": "in outages",
        "unknown": "for an unknown cause",
    }
    parts = [f"{counts[cause]:,} {words}" for cause, words in causes.items() if counts.get(cause)]
    share = f"{100 * lost / sent:.2g} %"
    first = f"Of {sent:,} data packets, {lost:,} ({share}) were lost: {', '.join(parts)}{_records_lost(trace)}."
    return first + _by_channel(trace)


def _by_channel(trace: Trace) -> str:
    """Return the sentence on the loss rate of the channel outside outages; empty where it is not known."""
    rate = next((one for one in trace.estimates if one.name == "channel_loss_share"), None)
    if rate is None or not rate.value or rate.low is None or rate.high is None:
        return ""
    value, low, high = (f"{100 * each:.2g}" for each in (rate.value, rate.low, rate.high))
    return f" Outside outages the channel takes {value} % of the packets (95 % interval {low} to {high} %)."


def _records_lost(trace: Trace) -> str:
    """Return the numbers of the first and the last lost packet in the capture, as words."""
    import pyarrow.compute as pc

    rows = trace.channel
    records = rows.filter(pc.not_equal(rows["cause"].cast("string"), "none"))["record"].drop_null()
    if not len(records):
        return ""
    first, last = pc.min_max(records).as_py().values()
    return f" (packet {first} of the capture)" if first == last else f" (packets {first} to {last} of the capture)"


def _agreement_with_capture(best: Candidate) -> str:
    difference = 100 * best.goodput_difference
    if abs(best.goodput_difference) <= GOODPUT_BOUND:
        near = f"within {max(abs(difference), 0.1):.1f} %"
        return f"Replayed over this channel, {best.variant} reproduces the captured goodput {near}."
    return (
        f"No variant reproduces the capture within {100 * GOODPUT_BOUND:.0f} %; the best match, {best.variant}, "
        f"differs by {difference:+.1f} %, so the comparison below holds between replays only."
    )


def _what_if(findings: Sequence[Mapping[str, Any]], runs: Sequence[Mapping[str, Any]]) -> list[str]:
    gains = [row for row in findings if row["section"] == "what_if" and row["metric"] == "goodput_gain"]
    resets = _resets(findings)
    if not gains:
        return resets
    sure = [row for row in gains if row["verdict"] == "info" and row["value"] > 0]
    if not sure:
        return [*resets, "No variant or proxy that was tried is significantly better."]
    best = max(sure, key=lambda row: row["value"])
    sentences = [*resets, f"The best of those tried is {best['text']}"]
    beyond = _share_beyond(best["subject"], runs)
    if beyond > MIN_SHARE_REPORTED:
        sentences.append(
            f"Of the packets that this choice sent, {100 * beyond:.0f} % were more than the capture has: they were "
            "replayed over a repetition of the captured channel, and that part of the result is less certain."
        )
    return sentences


MAX_RESETS_LISTED = 2
"""Subjects whose resets, or whose lost data, the summary lists; of more it gives the number."""


def _resets(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    what_if = [row for row in findings if row["section"] == "what_if"]
    said = [row["text"] for row in what_if if row["metric"] == "resets"]
    if len(said) > MAX_RESETS_LISTED:
        said = [f"With {len(said)} of the choices tried, connections were reset; the section What if counts them."]
    damage = [row["text"] for row in what_if if row["metric"] in DAMAGE_METRICS]
    if len(damage) > MAX_RESETS_LISTED:
        damage = [
            f"With {len(damage)} of the choices tried, proxies lost or damaged data; the section What if says it."
        ]
    return said + damage


MIN_SHARE_REPORTED = 0.1
"""Share of packets beyond the captured trace from which the summary says so."""


def _share_beyond(subject: str, runs: Sequence[Mapping[str, Any]]) -> float:
    mine = [
        run
        for run in runs
        if run["channel_mode"] == "replayed"
        and run["purpose"] == "what_if"
        and run["role"] == "under_test"
        and run_subject(run["variant"], run["proxy"]) == subject
    ]
    sent = sum(run["segments_out"] for run in mine)
    return sum(run["trace_beyond_pkts"] or 0 for run in mine) / sent if sent else 0.0
