"""Who may know whom, by reading the imports; and what `import hindflight` and the README promise."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

import hindflight
from hindflight.__main__ import ROOMS, foreign_rooms
from toolkit.cli.app import build

ROOT = Path(__file__).resolve().parent.parent
OURS = (*ROOMS, "hindflight", "fixtures", "tests", "benches")
GROUND = {"toolkit.schema", "toolkit.errors", "toolkit.files", "toolkit.units"}
NATIVE = "toolkit._native"

PUBLIC_NAMES = {
    "Controller",
    "HindflightError",
    "__version__",
    "charts",
    "check_controller",
    "open",
    "replay",
    "report",
}
"""What `import hindflight` offers; whoever adds a name adds it here and to the docstring of the package."""

# Which crates of ours each crate may use.
CRATES = {
    "hindflight-decoder": set(),
    "hindflight-kernels": set(),
    "hindflight-flows": {"hindflight-decoder"},
    "hindflight-engine": {"hindflight-kernels"},
    "hindflight-native": {"hindflight-decoder", "hindflight-flows", "hindflight-kernels", "hindflight-engine"},
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(room: str) -> dict[str, Path]:
    return {module_name(path): path for path in sorted((ROOT / room).rglob("*.py"))}


def imported(path: Path) -> set[str]:
    """Every module of ours that `path` imports, at its top, in a function or for type checking alone."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: imports are absolute"
            package = node.module or ""
            found |= {whole if is_module(whole := f"{package}.{name.name}") else package for name in node.names}
    return {name for name in found if name.partition(".")[0] in OURS}


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return name == NATIVE or path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def _same_package(module: str, name: str, package: str) -> bool:
    return within(module, package) and within(name, package)


def may(module: str, name: str) -> bool:
    """Whether `module` may import `name`, but for the native core."""
    room = module.partition(".")[0]
    if within(module, "toolkit.cli"):
        return name == "hindflight.steps" or name.partition(".")[0] in ROOMS
    if room == "hindflight":
        whole = name.partition(".")[0] in (*ROOMS, "hindflight")
        return whole and (module == "hindflight.__main__" or not within(name, "toolkit.cli"))
    if any(within(module, ground) for ground in GROUND):
        return (module, name) == ("toolkit.files", "toolkit.errors") or _same_package(module, name, "toolkit.schema")
    if room == "toolkit":
        return within(name, "toolkit") and not within(name, "toolkit.cli")
    allowed = {"channels": ("channels",), "replay": ("replay", "channels"), "reports": ("reports",)}[room]
    return name in GROUND or any(within(name, package) for package in allowed)


@pytest.mark.parametrize("room", [*ROOMS, "hindflight"])
def test_dependencies_point_one_way(room: str) -> None:
    found = modules(room)
    assert found, f"{room} has no module"
    wrong = [
        f"{module} imports {name}"
        for module, path in found.items()
        for name in imported(path)
        if name != NATIVE and not may(module, name)
    ]
    assert not wrong


def test_the_rule_catches_what_it_should() -> None:
    for module, name in (
        ("reports.page", "toolkit.workspace"),
        ("channels.extract", "toolkit.capture"),
        ("channels.extract", "replay.scenario"),
        ("replay.jobs", "reports.page"),
        ("toolkit.ingest", "channels.extract"),
        ("toolkit.ingest", "toolkit.cli.app"),
        ("toolkit.ingest", "hindflight"),
        ("toolkit.ingest", "fixtures.make_snaplog"),
        ("toolkit.cli.app", "hindflight"),
        ("hindflight", "toolkit.cli.app"),
        ("hindflight.steps", "toolkit.cli.output"),
        ("toolkit.schema", "toolkit.errors"),
    ):
        assert not may(module, name), f"{module} may import {name}"
    for module, name in (
        ("reports.page", "toolkit.schema"),
        ("replay.jobs", "channels.trace"),
        ("toolkit.cli.app", "reports.page"),
        ("hindflight", "toolkit.source"),
    ):
        assert may(module, name), f"{module} may not import {name}"


def test_one_module_per_room_touches_the_native_core() -> None:
    for room, most in (("toolkit", 1), ("channels", 1), ("replay", 1), ("reports", 0), ("hindflight", 0)):
        users = [module for module, path in modules(room).items() if NATIVE in imported(path)]
        assert len(users) <= most, f"{room}: {', '.join(users)}"
        assert not [user for user in users if within(user, "toolkit.cli")]


def test_crates_point_one_way() -> None:
    members = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    found = {}
    for member in members:
        crate = tomllib.loads((ROOT / member / "Cargo.toml").read_text())
        kinds = ("dependencies", "dev-dependencies", "build-dependencies")
        uses = {name for kind in kinds for name in crate.get(kind, {}) if name.startswith("hindflight-")}
        found[crate["package"]["name"]] = uses
    assert set(found) == set(CRATES)
    for name, uses in found.items():
        assert uses <= CRATES[name], f"{name} uses {', '.join(sorted(uses - CRATES[name]))}"


def test_public_names() -> None:
    assert set(hindflight.__all__) == PUBLIC_NAMES
    for name in PUBLIC_NAMES:
        assert getattr(hindflight, name) is not None


def test_importing_hindflight_is_light() -> None:
    heavy = ("pyarrow", "polars", "duckdb", "numpy", "typer")
    script = f"import sys, hindflight; sys.exit(str([name for name in {heavy} if name in sys.modules]))"
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.stderr.strip() == "[]"


def test_the_rooms_are_our_own() -> None:
    assert foreign_rooms() == []


def test_a_room_of_another_project_is_found_out(tmp_path: Path) -> None:
    django = tmp_path / "channels"
    django.mkdir()
    (django / "__init__.py").write_text('__version__ = "4"\n')
    script = "import sys, hindflight.__main__ as m; sys.argv[1:] = ['--version']; sys.exit(m.main())"
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "the package channels in this environment is another project's" in ended.stderr


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_pages_name_commands_that_exist() -> None:
    app = typer.main.get_command(build())
    commands = set(app.list_commands(None))  # type: ignore[attr-defined]
    quoted = re.compile(r"(?:^|`)(?:\$ )?hindflight ([a-z]+)", re.MULTILINE)
    for page in pages():
        named = set(quoted.findall(page.read_text()))
        assert named <= commands, f"{page.name} names {', '.join(sorted(named - commands))}"


def test_pages_name_files_that_exist() -> None:
    names = re.compile(r"(?:\]\(|`)((?:docs|toolkit|channels|replay|reports|hindflight|fixtures|tests)/[\w./-]*\w)")
    for page in pages():
        for name in names.findall(page.read_text()):
            assert (ROOT / name).exists(), f"{page.name} names {name}"


def test_links_between_pages_lead_somewhere() -> None:
    links = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
    for page in [ROOT / "CONTRIBUTING.md", *pages()]:
        for link in links.findall(page.read_text()):
            assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} leads to {link}"


def test_every_page_about_channels_is_listed() -> None:
    folder = ROOT / "docs" / "channels"
    listed = set(re.findall(r"\]\((\w+\.md)\)", (folder / "README.md").read_text()))
    assert listed == {page.name for page in folder.glob("*.md")} - {"README.md"}
