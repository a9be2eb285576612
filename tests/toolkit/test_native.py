"""The extension has the names that its stub declares, no more and no fewer."""

from __future__ import annotations

import ast
from pathlib import Path

from hindflight import _native

STUB = Path(__file__).parents[2] / "hindflight/_native.pyi"


def test_names_of_the_stub_and_of_the_extension() -> None:
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    defined = {name for name in defined if not name.startswith("_")}
    listed = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert set(listed) == defined
    assert {name for name in vars(_native) if not name.startswith("_")} == defined
    assert listed == sorted(listed)
