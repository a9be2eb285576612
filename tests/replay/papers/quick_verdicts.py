"""Writes quick_verdicts.json: the verdict of each claim under `--quick`. Read the diff before you commit it.

python -m tests.replay.papers.quick_verdicts [PAPER...]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from hindflight.replay.papers.catalogue import PAPERS, paper_of
from hindflight.replay.papers.claims import claims_of
from hindflight.replay.papers.judge import QUICK, judge_claim
from hindflight.replay.papers.lab import Bench

GOLDEN = Path(__file__).with_name("quick_verdicts.json")


def main(names: Sequence[str]) -> None:
    """Judge the claims of the papers `names`, or of all."""
    verdicts = json.loads(GOLDEN.read_text()) if GOLDEN.is_file() else {}
    for name in names or PAPERS:
        paper, bench = paper_of(name), Bench()
        for claim in claims_of(paper.number):
            verdicts[claim.claim_id] = judge_claim(paper, claim, QUICK, bench).verdict
    GOLDEN.write_text(json.dumps(dict(sorted(verdicts.items())), indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
