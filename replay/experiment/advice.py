"""The recommendation of a report: a variant and a place of a proxy, the cache that it needs, and how sure that is.

Reads rows of `findings` and `runs` and the tables of the proxies; runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hindflight.replay.experiment.cache_knee import KNEE_SHARE, CacheKnee
from hindflight.replay.scenario.model import Scenario
from hindflight.replay.scenario.proposals import PLACES
from hindflight.replay.scenario.proxies import NO_PROXY, Proxy
from hindflight.toolkit.schema import run_subject

Rows = Sequence[Mapping[str, Any]]

SAME = 0.01
"""Goodput within this share of the largest is as good: recordings of one flow over a steady link differ by 0.6 to 1.9 %
(standard deviation)."""


@dataclass(frozen=True, slots=True)
class Advised:
    """What is recommended: the variant of the flow, the chain of proxies, and the row of its gain."""

    variant: str
    chain: str
    gain: Mapping[str, Any]

    @property
    def subject(self) -> str:
        """Return what the findings call it."""
        return str(self.gain["subject"])


def advised(findings: Rows, runs: Rows) -> Advised | None:
    """Return the choice with the largest gain of those that are better for sure; None where nothing may be concluded,
    or nothing is better."""
    better = _better(findings)
    if _failed_check(findings) or not better:
        return None
    best = max(better, key=lambda row: row["value"])
    keys = {(run["variant"], run["proxy"]) for run in runs if run["purpose"] == "what_if"}
    variant, chain = next(key for key in keys if run_subject(*key) == best["subject"])
    return Advised(variant, chain, best)


def recommendation(findings: Rows, best: Advised | None, placement: str) -> list[dict[str, Any]]:
    """Return the rows of section `recommendation`: what to do, then how sure that is, a sentence each.

    `placement` says what the proxies of `best` are. Empty without a comparison. `verdict` of the first is pass
    (recommended), unknown (nothing is better for sure) or fail (the self-check failed, so nothing may be concluded).
    """
    if not _gains(findings):
        return []
    if _failed_check(findings):
        text = "No recommendation: the self-check failed, so the what-if results must not be relied on."
        return [_row("", "fail", text)]
    if best is None:
        text = "No change is recommended: no variant or proxy that was tried is better by more than chance explains."
        return [_row("", "unknown", text)]
    row, subject = best.gain, best.subject
    gain = f"{row['value']:+.0f} % goodput, 95 % interval {row['low']:+.1f} to {row['high']:+.1f} %"
    rows = [_row(subject, "pass", f"Use {subject} ({gain}).{placement}", row)]
    rival = _rival(row, _better(findings))
    if rival:
        rows.append(_row(subject, "unknown", f"{rival} may be as good: the 95 % intervals of the two gains overlap."))
    rows.append(_row(subject, *_certainty(subject, findings, checked=bool(_checks(findings)))))
    return rows


def placement_of(scenario: Scenario, best: Advised, knee: CacheKnee | None, runs: Rows) -> str:
    """Return sentences on the proxies of `best`: where each is, what it sends onward with, and how much memory they
    need, each sentence after a blank; "" without a proxy."""
    if best.chain == NO_PROXY:
        return ""
    proxies = scenario.proxies_of().chain(best.chain)
    said = [f" {_what(scenario, best.variant, proxy)}." for proxy in proxies]
    return "".join((*said, _cache(best, knee, runs)))


def _what(scenario: Scenario, variant: str, proxy: Proxy) -> str:
    if proxy.protects:
        return f"The proxy {proxy.name} protects the links from {proxy.node} to {proxy.peer} by {proxy.kind.upper()}"
    return f"The proxy {proxy.name} is {_where(scenario, proxy)}{_onward(variant, proxy)}"


def _where(scenario: Scenario, proxy: Proxy) -> str:
    place = None if scenario.captured is None else PLACES.get(proxy.node)
    return f"at {proxy.node}" if place is None else place


def _onward(variant: str, proxy: Proxy) -> str:
    return f"; it sends onward with {proxy.variant or variant}" if proxy.kind == "split" else ""


def _cache(best: Advised, knee: CacheKnee | None, runs: Rows) -> str:
    if knee is not None:
        needed, whole = (f"{octets / 1e3:,.0f} kB" for octets in (knee.knee_bytes, knee.whole_bytes))
        return f" With a cache of {needed}, it has {100 * KNEE_SHARE:.0f} % of the goodput that it has with {whole}."
    held = _held_bytes(best, runs)
    return f" It buffered up to {held / 1e3:,.0f} kB: give it at least that much." if held else ""


def _held_bytes(best: Advised, runs: Rows) -> float:
    held = [
        run["proxy_held_max_bytes"] or 0
        for run in runs
        if run["purpose"] == "what_if" and run["role"] == "under_test"
        if (run["variant"], run["proxy"]) == (best.variant, best.chain)
    ]
    return float(max(held, default=0))


def _gains(findings: Rows) -> Rows:
    return [row for row in findings if row["section"] == "what_if" and row["metric"] == "goodput_gain"]


def _better(findings: Rows) -> Rows:
    return [row for row in _gains(findings) if row["low"] is not None and row["low"] > 0]


def _checks(findings: Rows) -> Rows:
    return [row for row in findings if row["section"] == "self_check" and row["metric"] == "goodput_difference"]


def _failed_check(findings: Rows) -> bool:
    checks = _checks(findings)
    return bool(checks) and checks[0]["verdict"] == "fail"


def _row(subject: str, verdict: str, text: str, number: Mapping[str, Any] | None = None) -> dict[str, Any]:
    row = {"section": "recommendation", "subject": subject, "metric": "", "unit": "", "verdict": verdict, "text": text}
    if number is None:
        return row
    return {**row, "value": number["value"], "low": number["low"], "high": number["high"], "unit": "%"}


def _rival(best: Mapping[str, Any], better: Rows) -> str:
    """Return the choice next to the best, if their intervals overlap: one without a proxy before all others, because it
    needs no further host."""
    others = [row for row in better if row["subject"] != best["subject"] and row["high"] >= best["low"]]
    whole = [row for row in others if row["subject"] == str(row["subject"]).partition(",")[0]]
    return str(max(whole or others, key=lambda row: row["value"])["subject"]) if others else ""


def _certainty(subject: str, findings: Rows, *, checked: bool) -> tuple[str, str]:
    """Say how sure the recommendation is: whether it is first however the captured losses are replayed."""
    reserve = "" if checked else " No self-check was possible, so the error of the replay is not known."
    ways: dict[str, dict[str, float]] = {}
    for row in findings:
        if row["section"] == "sensitivity" and str(row["metric"]).startswith("by_") and row["value"] is not None:
            ways.setdefault(str(row["metric"]), {})[str(row["subject"])] = row["value"]
    ways = {way: found for way, found in ways.items() if subject in found}
    if not ways:
        return "unknown", f"How much this depends on the way in which losses are replayed is not known.{reserve}"
    first = [way for way, found in ways.items() if found[subject] >= (1 - SAME) * max(found.values())]
    if len(first) == len(ways):
        return (
            "info",
            f"In all {len(ways)} ways of replaying the captured losses it has the highest goodput, or one within "
            f"{100 * SAME:.0f} % of it.{reserve}",
        )
    text = (
        f"Not certain: only in {len(first)} of {len(ways)} ways of replaying the captured losses does it have the "
        f"highest goodput, or one within {100 * SAME:.0f} % of it."
    )
    return "unknown", text + reserve
