"""The room's walls: reports sees the schema and the errors, no capture, no engine, no clock."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import reports

ROOM = Path(reports.__file__).parent
MODULES = sorted(ROOM.rglob("*.py"))
OURS = {"toolkit", "channels", "replay", "hindflight", "reports", "fixtures"}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOM)))
def test_a_module_sees_only_what_it_may(path: Path) -> None:
    ours = {name for name in imports(path) if name.split(".")[0] in OURS and not name.startswith("reports")}
    assert all(name == "toolkit.schema" or name.startswith(("toolkit.schema.", "toolkit.errors.")) for name in ours)


def test_every_asset_is_where_the_page_looks_for_it() -> None:
    assert {path.name for path in (ROOM / "assets").iterdir()} == {
        "body.html.j2", "page.html.j2", "report.css", "report.js",
    }  # fmt: skip
