"""The report as Markdown and JSON: complete, and inert whatever a capture calls itself."""

from __future__ import annotations

import json
import re

import pyarrow as pa

from hindflight.reports.document import ReportMeta, json_of, markdown_of, sections_of
from hindflight.toolkit.schema import table_from_rows
from tests.reports.conftest import Tables, finding

HOSTILE = "<img src=x onerror=alert(1)> | [a](javascript:b) ![p](http://192.0.2.9/) `c` # d \x1b[31m\n1. e"


def test_every_sentence_table_and_chart_is_in_both(tables: Tables) -> None:
    meta = ReportMeta("A flow", "2026-11-21 10:40 UTC")
    found = sections_of(tables, meta)
    text = markdown_of(meta, found, {"flow-1-rtt": "charts/rtt.png"}).decode()
    document = json.loads(json_of(meta, found))
    assert "* A sender moved 120 kB in 6.5 s." in text
    assert "![Round-trip time](<charts/rtt.png>)" in text
    assert "| reno | 150.0 kbit/s: pass |" in text
    kinds: dict[str, int] = {}

    def count(part: dict[str, object]) -> None:
        kinds[str(part["kind"])] = kinds.get(str(part["kind"]), 0) + 1
        inside = part.get("parts", [])
        assert isinstance(inside, list)
        for each in inside:
            count(each)

    for section in document["sections"]:
        count(section)
    assert kinds["chart"] == 14
    assert kinds["finding"] == 2
    assert text.count("\n| --- |") == kinds["table"]


def test_a_finding_links_to_what_is_behind_it(tables: Tables) -> None:
    findings = pa.concat_tables(
        [tables["findings"], table_from_rows("findings", [{**finding("summary", text="13 MB."), "metric": "goodput"}])]
    )
    meta = ReportMeta("A flow")
    text = markdown_of(meta, sections_of({**tables, "findings": findings}, meta), {}).decode()
    assert "* 13 MB. [throughput over time](#flow-1-throughput)" in text
    targets = re.findall(r"\]\(#([^)]*)\)", text)
    assert targets
    assert all(text.count(f'<a id="{target}"></a>\n\n#') == 1 for target in targets)


def test_a_gain_has_one_sign() -> None:
    """The mark "less" after a negative number read as a double negative: "-23.4 % less"."""
    row = {**finding("what_if", "newreno", "goodput_gain", value=-23.4, unit="%"), "low": -31.4, "high": -15.5}
    meta = ReportMeta("A flow")
    text = markdown_of(meta, sections_of({"findings": table_from_rows("findings", [row])}, meta), {}).decode()
    assert "\N{MINUS SIGN}23.4 % (\N{MINUS SIGN}31.4 to \N{MINUS SIGN}15.5 %): less" in text


def test_hostile_text_is_inert_in_markdown() -> None:
    rows = table_from_rows(
        "findings", [finding("summary", text=HOSTILE), finding("what_if", HOSTILE, "goodput", value=1.0)]
    )
    meta = ReportMeta(HOSTILE)
    text = markdown_of(meta, sections_of({"findings": rows}, meta), {}).decode()
    assert "\x1b" not in text
    assert "\\<img" in text
    assert not [line for line in text.splitlines() if line.startswith("1. ")]
    for active in (" <img", " [a](", " ![p](", " `c`", " | [a]"):
        assert active not in text
