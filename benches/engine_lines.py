"""Lines of the engine's code: without tests, blank lines and comments.

`python -m benches lines [FOLDER]`; `python -m benches lines --since COMMIT` shows what each commit since then added. A
module behind `#[cfg(test)]` does not count, in its own file or in another one.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = "replay/engine/src"
ENGINE = ROOT / SOURCES
APART = {
    "ns-2's TCP/Linux: a recovery algorithm and the integer arithmetic of its modules": (
        "tcp/recovery/ns2_tcp_linux.rs",
        "cc/variants/ns2_linux_",
    ),
    "split proxies": ("proxy/", "config/proxy.rs", "config/validate/proxy.rs", "tcp/receiver/process_reads.rs"),
    "applications and their delays": ("app/", "config/application.rs"),
    "controllers written in Python": ("cc/external.rs",),
    "trees of paths, flows that stop, filters of ACKs": ("config/tree.rs", "sim/stops.rs", "net/queue/ack_filter.rs"),
    "packets of a capture as cross traffic": ("config/recorded.rs", "net/recorded.rs"),
}
"""Parts that are separate features, by the beginnings of their paths."""
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


def lines_at(commit: str) -> int:
    """Return the code lines of the engine at `commit`."""
    archive = subprocess.run(["git", "archive", commit, SOURCES], cwd=ROOT, capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=BytesIO(archive)) as sources:
        sources.extractall(folder, filter="data")
        return sum(count(Path(folder) / SOURCES).values())


def added(since: str) -> Iterator[tuple[int, str]]:
    """Yield what each commit after `since` added to the engine's code, and its name; merges are left out."""
    log = ["git", "log", "--no-merges", "--reverse", "--format=%h %s", f"{since}..HEAD", "--", SOURCES]
    shown = subprocess.run(log, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    at = cache(lines_at)
    for line in shown.splitlines():
        commit = line.partition(" ")[0]
        yield at(commit) - at(f"{commit}~1"), line


def show(folder: Path) -> None:
    """Print the lines of each part of the engine, their sum, and the parts of it that stand apart."""
    lines = count(folder)
    parts: dict[str, int] = {}
    for name, number in lines.items():
        part = name.partition("/")[0]
        parts[part] = parts.get(part, 0) + number
    for part, number in sorted(parts.items()):
        print(f"  {part:20} {number:6}")
    print(f"  {'sum':20} {sum(lines.values()):6} lines of code in {len(lines)} files")
    for reason, beginnings in APART.items():
        number = sum(number for name, number in lines.items() if name.startswith(beginnings))
        print(f"  {'of these':20} {number:6} {reason}")


def main(words: list[str]) -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(prog="python -m benches lines")
    parser.add_argument("folders", nargs="*", type=Path, default=[ENGINE])
    parser.add_argument("--since", metavar="COMMIT", help="what each commit after this one added")
    given = parser.parse_args(words)
    if given.since is None:
        for folder in given.folders:
            show(folder)
        return
    print(f"  {lines_at(given.since):6} at {given.since}")
    for number, name in added(given.since):
        if number:
            print(f"  {number:+6} {name}", flush=True)
    print(f"  {lines_at('HEAD'):6} now")
