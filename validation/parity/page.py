"""The tables of the page: per capture, per field, and the kinds of differences with an example of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from validation.parity.compare import Difference, Outcome

Compare = Callable[[Path], Outcome]


def share(outcomes: list[Outcome], damaged: bool = False) -> float:
    """Return the share of equal values, of captures with invalid time stamps only if `damaged`."""
    judged = [one for one in outcomes if damaged or not one.damaged]
    compared = sum(one.compared for one in judged)
    return 1 - sum(len(one.differences) for one in judged) / compared if compared else 1.0


def tables(peer: str, outcomes: list[Outcome], kinds: Mapping[str, str]) -> str:
    """Return the section of one peer as Markdown."""
    compared = sum(one.compared for one in outcomes)
    different = sum(len(one.differences) for one in outcomes)
    unexplained = sum(len(one.unexplained) for one in outcomes)
    lines = [
        f"## {peer}",
        "",
        f"{compared:,} values of {len(outcomes)} captures: {different:,} differ, {unexplained:,} of them without an"
        f" explanation. {100 * share(outcomes):.3f} % are equal; with captures whose time stamps are invalid, of which"
        f" {peer} makes what it can, {100 * share(outcomes, damaged=True):.3f} %.",
        "",
        "| kind | values | example | what it is |",
        "|---|---:|---|---|",
        *_kinds(outcomes, kinds),
        "",
        "| field | different | kinds |",
        "|---|---:|---|",
        *_fields(outcomes),
        "",
        f"| capture | values | different | unexplained | only {peer} | only Hindflight |",
        "|---|---:|---:|---:|---:|---:|",
        *(_capture(one) for one in outcomes if one.differences or one.only_peer or one.only_ours),
        "",
        "All values of the other captures are equal, or they hold no TCP.",
        "",
    ]
    return "\n".join(lines)


def _capture(one: Outcome) -> str:
    name = f"`{one.capture}`" + (" (invalid time stamps)" if one.damaged else "")
    counts = (one.compared, len(one.differences), len(one.unexplained), one.only_peer, one.only_ours)
    return f"| {name} | " + " | ".join(f"{count:,}" for count in counts) + " |"


def _kinds(outcomes: list[Outcome], kinds: Mapping[str, str]) -> list[str]:
    differences = [one for outcome in outcomes for one in outcome.differences]
    counts = Counter(one.kind for one in differences)
    first: dict[str, Difference] = {}
    for one in differences:
        first.setdefault(one.kind, one)
    texts = {**kinds, "": "not explained"}
    return [
        f"| {kind or '-'} | {counts[kind]:,} | `{(one := first[kind]).capture}` {one.place}: `{one.field}` is"
        f" `{one.peer or '-'}`, here `{one.ours or '-'}` | {text} |"
        for kind, text in texts.items()
        if counts[kind]
    ]


def _fields(outcomes: list[Outcome]) -> list[str]:
    kinds: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        for one in outcome.differences:
            kinds.setdefault(one.field, Counter())[one.kind or "-"] += 1
    return [
        f"| `{name}` | {sum(counts.values()):,} | {', '.join(sorted(counts))} |"
        for name, counts in sorted(kinds.items())
    ]
