"""One number of the engine compared with a reference, with a bound stated beforehand: pass or fail.

Does not depend on kernels or formulas. A bound is two-sided: too much and too little both fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

SECTION = "validation"
"""Value of `findings.section` of all rows."""

Verdict = Literal["pass", "fail", "unknown"]


@dataclass(frozen=True, slots=True)
class Check:
    """`value` against `reference`, from which it may differ by `allowed`; all in `unit`.

    `value` is None where the comparison could not be made; `text` then says why.
    """

    subject: str
    metric: str
    value: float | None
    reference: float
    allowed: float
    unit: str
    text: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether the bound holds."""
        if self.value is None:
            return "unknown"
        return "pass" if abs(self.value - self.reference) <= self.allowed else "fail"

    @property
    def relative(self) -> float | None:
        """Relative difference from the reference; None without a value or with a reference of 0."""
        return None if self.value is None or self.reference == 0 else self.value / self.reference - 1


def within_share(subject: str, metric: str, value: float, reference: float, share: float, unit: str) -> Check:
    """Return a check that allows `share` of the reference either way."""
    return Check(subject, metric, value, reference, share * abs(reference), unit)


def not_made(subject: str, metric: str, why: str) -> Check:
    """Return the check of a comparison that could not be made."""
    return Check(subject, metric, None, 0.0, 0.0, "", why)


def failures(checks: Iterable[Check]) -> list[Check]:
    """Return the checks that fail."""
    return [check for check in checks if check.verdict == "fail"]


def finding(check: Check) -> dict[str, Any]:
    """Return the row of `findings`: `low` and `high` are the ends of the accepted interval."""
    made = check.value is not None
    return {
        "section": SECTION,
        "subject": check.subject,
        "metric": check.metric,
        "value": check.value,
        "low": check.reference - check.allowed if made else None,
        "high": check.reference + check.allowed if made else None,
        "unit": check.unit,
        "verdict": check.verdict,
        "text": check.text or _sentence(check),
    }


def _sentence(check: Check) -> str:
    unit = f" {check.unit}" if check.unit else ""
    return (
        f"{check.subject}: {check.metric} is {check.value:.6g}{unit} and should lie within {check.allowed:.4g}{unit} "
        f"of {check.reference:.6g}{unit}."
    )
