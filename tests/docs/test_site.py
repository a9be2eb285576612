"""The pages of the site: each is in the navigation, and the code that they show is right.

`make docs` runs the tutorial and the notebooks; here is what takes no time.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from docs.scripts.make_gallery import FLIGHT_COMMANDS, write_flight
from hindflight.replay.controllers.base import variant_names
from hindflight.replay.scenario.model import load_scenario, parse_scenario

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDES = sorted([*(DOCS / "howto").glob("*.md"), *(DOCS / "from").glob("*.md"), DOCS / "tutorial.md"])
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def test_the_navigation_lists_every_page() -> None:
    listed: set[Path] = set()
    for block in blocks(DOCS / "index.md", r"\{toctree\}"):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                listed |= set(DOCS.glob(f"{line}.*")) or {(DOCS / line).resolve()}
    pages = {p for p in DOCS.rglob("*") if p.suffix in {".md", ".ipynb"} and p != DOCS / "index.md"}
    assert pages - listed == set()


@pytest.mark.parametrize("page", GUIDES, ids=lambda p: p.stem)
def test_the_python_of_a_guide_parses(page: Path) -> None:
    for code in [*blocks(page, "python"), *blocks(page, r"\{code-cell\}")]:
        if not code.startswith("%%"):
            ast.parse(code)


@pytest.mark.parametrize("page", GUIDES, ids=lambda p: p.stem)
def test_the_scenarios_of_a_guide_are_valid(page: Path, tmp_path: Path) -> None:
    for i, text in enumerate(blocks(page, "toml")):
        if "duration" in tomllib.loads(text):
            path = tmp_path / f"{i}.toml"
            path.write_text(text)
            assert load_scenario(path, (*variant_names(), "gentle")).links


@pytest.mark.parametrize("name", ["proxies.md", "howto/my-proxy.md"])
def test_the_proxies_of_a_page_are_accepted_on_a_path_with_their_nodes(name: str) -> None:
    files = [file for text in blocks(DOCS / name, "toml") if "proxy" in (file := tomllib.loads(text))]
    assert files
    for file in files:
        ends = [table[key] for table in file["proxy"] for key in ("node", "peer") if key in table]
        path = file.get("path", ["one-end", *dict.fromkeys(ends), "other-end"])
        names = [table["name"] for table in file["proxy"]]
        lossy = {"rate": "1 Mbit/s", "delay": "5 ms", "queue": "50 pkts", "loss": {"model": "bernoulli", "per": 0.01}}
        links = [{"name": f"hop-{i}", **lossy} for i in range(len(path) - 1)]
        compare = file.get("compare", {"variants": ["newreno"], "proxies": names})
        whole = {"name": name, "duration": "60 s", **file, "path": path, "links": links, "compare": compare}
        assert parse_scenario(whole, name, variant_names()).proxy


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert [c for c in cells if c.get("outputs") or c.get("execution_count")] == []


def test_the_gallery_shows_the_commands_of_its_flight(tmp_path: Path) -> None:
    """The flight has outages in both turns, and the log says so where they were."""
    page = " ".join((DOCS / "gallery.md").read_text().split())
    for command in FLIGHT_COMMANDS:
        assert f"`hindflight {' '.join(command)}`" in page
    write_flight(tmp_path)
    for command in FLIGHT_COMMANDS:
        written = [sys.executable, "-m", "hindflight", *command]
        subprocess.run(written, cwd=tmp_path, check=True, capture_output=True)
    report = (tmp_path / "flight.html").read_text(encoding="utf-8")
    assert re.search(r"The link had 2 outages, \d+\.\d+ s in all", report)
    assert "Track, coloured by goodput" in report
