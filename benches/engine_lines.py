"""Lines of the engine's code: without tests, blank lines and comments.

`python -m benches lines [FOLDER]`. A module behind `#[cfg(test)]` does not count, in its own file or in another one.
"""

from __future__ import annotations

import re
from pathlib import Path

ENGINE = Path(__file__).resolve().parent.parent / "replay/engine/src"
TEST_MODULE = re.compile(
    r"^\s*#\[cfg\(test\)\]\s*\n((?:\s*#\[.*\]\n)*)\s*(?:pub(?:\(\w+\))? )?mod (\w+)\s*([;{])", re.MULTILINE
)


def test_files(path: Path, text: str) -> set[Path]:
    """Return the files and folders of the test modules that `path` declares."""
    folder = path.parent if path.name in {"mod.rs", "lib.rs"} else path.with_suffix("")
    names = {found[2] for found in TEST_MODULE.finditer(text) if found[3] == ";"}
    return {folder / name for name in names} | {folder / f"{name}.rs" for name in names}


def without_tests(text: str) -> str:
    """Remove the test modules within the file: each ends at the first closing brace in its column."""
    while (found := TEST_MODULE.search(text)) is not None:
        if found[3] == ";":
            text = text[: found.start()] + text[found.end() :]
            continue
        indent = re.search(r"[^\n]*$", text[: found.start(2)])
        column = len(indent[0]) - len(indent[0].lstrip()) if indent else 0
        end = re.compile(rf"^ {{{column}}}}}$", re.M).search(text, found.end())
        text = text[: found.start()] + (text[end.end() :] if end else "")
    return text


def code_lines(text: str) -> int:
    """Count the lines that are neither blank nor a comment."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return sum(1 for line in map(str.strip, text.splitlines()) if line and not line.startswith("//"))


def count(folder: Path = ENGINE) -> dict[str, int]:
    """Return the code lines of each file below `folder` that is no test."""
    sources = {path: path.read_text() for path in sorted(folder.rglob("*.rs"))}
    tests = {test for path, text in sources.items() for test in test_files(path, text)}
    return {
        str(path.relative_to(folder)): code_lines(without_tests(text))
        for path, text in sources.items()
        if path not in tests and not any(parent in tests for parent in path.parents)
    }


def main(folders: list[str]) -> None:
    """Print the lines of each part of the engine and their sum."""
    for folder in [Path(name) for name in folders] or [ENGINE]:
        lines = count(folder)
        parts: dict[str, int] = {}
        for name, number in lines.items():
            part = name.partition("/")[0]
            parts[part] = parts.get(part, 0) + number
        for part, number in sorted(parts.items()):
            print(f"  {part:20} {number:6}")
        print(f"  {'sum':20} {sum(lines.values()):6} lines of code in {len(lines)} files")
