"""How often the verdicts of `hindflight verdicts` are right, by kind, over recordings whose truth is known.

`python -m validation captures DIR... --json` prints it; the table JUDGED of hindflight.flow_verdicts is such a one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from validation.captures.links import LinkScore
from validation.captures.report import FlowScore
from validation.captures.scores import CauseScore, Counts

MECHANISMS = {"sack/rack": "sack"}
"""What the verdict calls a cause of `truth`, where the names differ."""


def reliability(flows: Sequence[FlowScore]) -> list[dict[str, Any]]:
    """Return, per verdict at the sender, how many were right and of how many."""
    own = [flow for flow in flows if flow.side == "sender"]
    causes = sum((flow.causes for flow in own), CauseScore())
    link = sum((flow.link for flow in own if flow.link is not None), LinkScore())
    seen = sum(not any(note.startswith("vantage") for note in flow.notes) for flow in own)
    found: list[tuple[str, str, Counts]] = [("vantage", "sender", Counts(right=seen, wrong=len(own) - seen))]
    found += [("retransmission", MECHANISMS.get(name, name), counts) for name, counts in causes.by_cause.items()]
    found += [("need", "spurious", causes.spurious), ("need", "needed", causes.needed)]
    found += [("loss", cause, counts) for cause, counts in link.causes.items()]
    found.append(("interruption", "outage", link.outages))
    return [
        {"about": about, "verdict": verdict, "right": counts.right, "of": counts.right + counts.wrong}
        for about, verdict, counts in found
        if counts.right + counts.wrong
    ]
