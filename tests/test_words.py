"""Identifiers use the terms of the field: words that the project once used in their place do not come back.

A test's name is a sentence, so names of tests do not count.
"""

from __future__ import annotations

import re
from collections import defaultdict

from tests.test_architecture import ROOT, code_files

REPLACED = {
    "arena": "packet pool",
    "ascribe": "attribute",
    "beside": "compared with",
    "buys": "increase",
    "calm": "fast path",
    "doubt": "undo",
    "dummies": "probe segments",
    "fates": "loss sequence",
    "greatest": "maximum",
    "guarded": "link-layer protection",
    "heard": "dupack",
    "likeness": "similarity",
    "misfit": "mismatch",
    "outlook": "handover forecast",
    "parcel": "packet",
    "passage": "satellite pass",
    "patience": "give-up policy",
    "plainly": "fast path",
    "plateaus": "piecewise-constant fit",
    "quiet": "fast path",
    "strike": "fire",
    "strikes": "fires",
    "supply": "data source",
    "takeover": "handover",
    "takeovers": "handovers",
    "ticket": "handle",
    "told": "reported",
    "walks": "state sequences",
}
"""Words, and what to write instead."""
ALLOWED = {
    "fates": "what became of a packet, as the recordings' column `fate` calls it",
    "guarded": "a reader of a log behind a guard against its errors",
    "misfit": "how far a fit is off; a run that does not repeat is a mismatch",
}
"""Of these, the words that have another meaning as well."""
CODE = {
    ".py": re.compile(r'"""[\s\S]*?"""|#.*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''),
    ".rs": re.compile(r'//.*|"(?:\\.|[^"\\])*"'),
}
TEST_NAME = {".py": re.compile(r"def test_\w+"), ".rs": re.compile(r"#\[test\]\s+fn \w+")}


def words_of(identifier: str) -> list[str]:
    """The words of a name in any case."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)]


def test_replaced_words_do_not_come_back() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for suffix, aside in CODE.items():
        for path in code_files(suffix):
            text = TEST_NAME[suffix].sub("", aside.sub("", path.read_text(encoding="utf-8")))
            for identifier in set(re.findall(r"[A-Za-z_]\w+", text)):
                for word in REPLACED.keys() & set(words_of(identifier)):
                    found[word].add(f"{path.relative_to(ROOT)}: {identifier}")
    assert not {word: sorted(places) for word, places in found.items() if word not in ALLOWED}
    assert set(found) == set(ALLOWED), "a word that is allowed and that nobody uses"


def test_a_name_has_words_in_any_case() -> None:
    assert words_of("_told_by_ACKs") == ["told", "by", "ac", "ks"]
    assert words_of("DraftTakeover") == ["draft", "takeover"]
    assert words_of("MAX_PASSAGE_NS") == ["max", "passage", "ns"]
