"""The recommendation of a report: a variant and a place of a proxy, the cache that it needs, and how sure that is.

Reads rows of `findings` and `runs`; runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hindflight.toolkit.schema import run_subject

Rows = Sequence[Mapping[str, Any]]


def recommendation(findings: Rows, runs: Rows) -> list[dict[str, Any]]:
    """Return the rows of section `recommendation`: what to do, then how sure that is, a sentence each.

    Empty without a comparison. `verdict` of the first is pass (recommended), unknown (nothing is better for sure) or
    fail (the self-check failed, so nothing may be concluded).
    """
    gains = [row for row in findings if row["section"] == "what_if" and row["metric"] == "goodput_gain"]
    if not gains:
        return []
    checks = [row for row in findings if row["section"] == "self_check" and row["metric"] == "goodput_difference"]
    if checks and checks[0]["verdict"] == "fail":
        text = "No recommendation: the self-check failed, so the what-if results must not be relied on."
        return [_row("", "fail", text)]
    better = [row for row in gains if row["low"] is not None and row["low"] > 0]
    if not better:
        text = "No change is recommended: no variant or proxy that was tried is better by more than chance explains."
        return [_row("", "unknown", text)]
    best = max(better, key=lambda row: row["value"])
    subject = best["subject"]
    cache = _cache_bytes(subject, runs)
    place = f" The proxy buffered up to {cache / 1e3:,.0f} kB: give it at least that much." if cache else ""
    gain = f"{best['value']:+.0f} % goodput, 95 % interval {best['low']:+.1f} to {best['high']:+.1f} %"
    rows = [_row(subject, "pass", f"Use {subject} ({gain}).{place}", best)]
    rival = _rival(best, better)
    if rival:
        rows.append(_row(subject, "unknown", f"{rival} may do as well: the two intervals overlap."))
    rows.append(_row(subject, *_certainty(subject, findings, checked=bool(checks))))
    return rows


def _row(subject: str, verdict: str, text: str, number: Mapping[str, Any] | None = None) -> dict[str, Any]:
    row = {"section": "recommendation", "subject": subject, "metric": "", "unit": "", "verdict": verdict, "text": text}
    if number is None:
        return row
    return {**row, "value": number["value"], "low": number["low"], "high": number["high"], "unit": "%"}


def _cache_bytes(subject: str, runs: Rows) -> float:
    held = [
        run["proxy_held_max_bytes"] or 0
        for run in runs
        if run["purpose"] == "what_if"
        and run["role"] == "under_test"
        and run["proxy"] != "none"
        and run_subject(run["variant"], run["proxy"]) == subject
    ]
    return float(max(held, default=0))


def _rival(best: Mapping[str, Any], better: Rows) -> str:
    """Return the choice next to the best, if their intervals overlap."""
    others = [row for row in better if row["subject"] != best["subject"] and row["high"] >= best["low"]]
    return str(max(others, key=lambda row: row["value"])["subject"]) if others else ""


def _certainty(subject: str, findings: Rows, *, checked: bool) -> tuple[str, str]:
    """Say how sure the recommendation is: whether it is first however the captured losses are replayed."""
    reserve = "" if checked else " No self-check was possible, so the error of the replay is not known."
    ways: dict[str, dict[str, float]] = {}
    for row in findings:
        if row["section"] == "sensitivity" and str(row["metric"]).startswith("by_") and row["value"] is not None:
            ways.setdefault(str(row["metric"]), {})[str(row["subject"])] = row["value"]
    ways = {way: found for way, found in ways.items() if subject in found}
    if not ways:
        return "unknown", f"How much it depends on the way in which losses are replayed is not known.{reserve}"
    first = [way for way, found in ways.items() if max(found, key=lambda name: found[name]) == subject]
    if len(first) == len(ways):
        return (
            "info",
            f"It is the best of the choices in all {len(ways)} ways of replaying the captured losses.{reserve}",
        )
    text = (
        f"It is the best of the choices in {len(first)} of {len(ways)} ways of replaying the captured losses: not sure."
    )
    return "unknown", text + reserve
