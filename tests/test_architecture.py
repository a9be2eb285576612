"""Which package may import which, sizes of files and folders, and what `import hindflight` and the README promise."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import typer

import hindflight
from hindflight.cli.app import build
from hindflight.replay.catalogue import catalogue

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("toolkit", "channels", "replay", "reports")
"""Folders at the top level that are imported as `hindflight.NAME`."""
TOOLS = ("validation", "benches", "docs", "fixtures", "tests")
"""Folders with Python code that no wheel holds."""
FOUNDATION = {f"hindflight.toolkit.{name}" for name in ("schema", "errors", "files", "seal", "text", "units")}
"""What every package may import."""
FILES_USES = {"hindflight.toolkit.errors", "hindflight.toolkit.seal"}
NATIVE = "hindflight._native"
LARGEST_FILE, LARGEST_FOLDER = 600, 25

PUBLIC_NAMES = {
    "channel_statistics",
    "fit",
    "models",
    "read_channel",
    "score",
    "sensitivity",
    "synth",
    "variants",
    "write_channel",
    "Tables",
    "Trace",
    "draft_scenario",
    "extract_channel",
    "whatif",
    "Controller",
    "HindflightError",
    "__version__",
    "batch",
    "charts",
    "compare",
    "check_controller",
    "events",
    "export",
    "flows",
    "info",
    "limits",
    "open",
    "pair",
    "place",
    "presets",
    "replay",
    "report",
    "reproduce",
    "segments",
    "verdicts",
}
"""What `import hindflight` offers; whoever adds a name adds it here and to the docstring of the package."""

# Which crates of ours each crate may use.
CRATES = {
    "hindflight-decoder": set(),
    "hindflight-kernels": set(),
    "hindflight-flows": {"hindflight-decoder"},
    "hindflight-profiles": {"hindflight-decoder", "hindflight-flows"},
    "hindflight-engine": {"hindflight-kernels"},
    "hindflight-native": {
        "hindflight-decoder",
        "hindflight-flows",
        "hindflight-profiles",
        "hindflight-kernels",
        "hindflight-engine",
    },
}


def code_files(suffix: str) -> list[Path]:
    """Every file of code in the repository, each once: links are not followed."""
    tops = ("hindflight", *PACKAGES, *TOOLS)
    found = [path for top in tops for path in (ROOT / top).rglob(f"*{suffix}")]
    return sorted(path for path in found if not any(part.is_symlink() for part in path.parents))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(("hindflight", *parts) if parts[0] in PACKAGES else parts)


MODULES = {module_name(path): path for path in code_files(".py")}


def is_module(name: str) -> bool:
    return name == NATIVE or name in MODULES


def modules(package: str) -> dict[str, Path]:
    """The modules of `package`; of `hindflight` those that are no package of `PACKAGES`."""
    others = [f"hindflight.{name}" for name in PACKAGES] if package == "hindflight" else []
    return {m: p for m, p in MODULES.items() if within(m, package) and not any(within(m, other) for other in others)}


def imported(path: Path) -> set[str]:
    """Every module of ours that `path` imports: at its top, in a function or for type checking alone."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: imports are absolute"
            package = node.module or ""
            found |= {whole if is_module(whole := f"{package}.{name.name}") else package for name in node.names}
    return {name for name in found if name.partition(".")[0] in ("hindflight", *TOOLS)}


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def package_of(module: str) -> str:
    """`hindflight.NAME` for a module of one of `PACKAGES`, else the first part of its name."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "hindflight" and parts[1:2] and parts[1] in PACKAGES else parts[0]


def may(module: str, name: str) -> bool:
    """Whether `module` may import `name`, apart from the native core."""
    own, other = package_of(module), package_of(name)
    if own in TOOLS:
        return other != "tests" or own == "tests" or within(name, "tests.reference")
    if other in TOOLS:
        return False
    if within(module, "hindflight.cli"):
        return name != "hindflight"
    if own == "hindflight":
        return module == "hindflight.__main__" or not within(name, "hindflight.cli")
    if any(within(module, each) for each in FOUNDATION):
        same = within(module, "hindflight.toolkit.schema") and within(name, "hindflight.toolkit.schema")
        return same or (module == "hindflight.toolkit.files" and name in FILES_USES)
    allowed = {own, "hindflight.channels"} if own == "hindflight.replay" else {own}
    return other in allowed or (own != "hindflight.toolkit" and any(within(name, each) for each in FOUNDATION))


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of `graph` with more than one node, each sorted."""
    reached = {node: _reachable(graph, node) for node in {*graph, *(n for used in graph.values() for n in used)}}
    found = {tuple(sorted(other for other in reached[node] if node in reached[other])) for node in graph}
    return [list(each) for each in sorted(found) if len(each) > 1]


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen, waiting = set(), [start]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += graph.get(node, set())
    return seen


@pytest.mark.parametrize("package", [*(f"hindflight.{name}" for name in PACKAGES), "hindflight", *TOOLS])
def test_dependencies_point_one_way(package: str) -> None:
    found = modules(package)
    assert found, f"{package} has no module"
    wrong = [
        f"{module} imports {name}"
        for module, path in found.items()
        for name in imported(path)
        if name != NATIVE and not may(module, name)
    ]
    assert not wrong


def test_the_rule_catches_what_it_should() -> None:
    for module, name in (
        ("hindflight.reports.page", "hindflight.toolkit.workspace"),
        ("hindflight.channels.extraction.extract", "hindflight.toolkit.capture"),
        ("hindflight.channels.extraction.extract", "hindflight.replay.scenario.model"),
        ("hindflight.replay.scenario.model", "hindflight.reports.page"),
        ("hindflight.toolkit.ingest", "hindflight.channels.trace"),
        ("hindflight.toolkit.ingest", "hindflight.cli.app"),
        ("hindflight.toolkit.ingest", "hindflight"),
        ("hindflight.toolkit.ingest", "fixtures.make_snaplog"),
        ("hindflight.replay.experiment.run", "validation.linux"),
        ("hindflight.cli.app", "hindflight"),
        ("hindflight.cli.app", "validation.linux"),
        ("hindflight", "hindflight.cli.app"),
        ("hindflight.workflow", "hindflight.cli.output"),
        ("hindflight.toolkit.schema", "hindflight.toolkit.errors"),
        ("validation.linux", "tests.e2e.conftest"),
    ):
        assert not may(module, name), f"{module} may import {name}"
    for module, name in (
        ("hindflight.reports.page", "hindflight.toolkit.schema"),
        ("hindflight.replay.scenario.model", "hindflight.channels.trace"),
        ("hindflight.cli.app", "hindflight.reports.page"),
        ("hindflight", "hindflight.toolkit.source"),
        ("validation.linux", "hindflight.replay.experiment.run"),
    ):
        assert may(module, name), f"{module} may not import {name}"


def test_no_import_cycles_between_modules() -> None:
    """Imports in functions and for type checking count: they only hide a cycle."""
    graph = {module: imported(path) - {module} for module, path in MODULES.items()}
    assert not cycles(graph)


def test_no_import_cycles_between_packages() -> None:
    def folder(module: str) -> str:
        path = MODULES[module]
        return module if path.name == "__init__.py" else module.rpartition(".")[0]

    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        home = folder(module)
        used = {folder(name) for name in imported(path) if name in MODULES}
        # A package and the packages inside it are one.
        graph.setdefault(home, set()).update(u for u in used if not within(u, home) and not within(home, u))
    assert not cycles(graph)


def test_cycles_are_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [["a", "b", "c"]]
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_one_module_per_package_touches_the_native_core() -> None:
    for package, most in (("toolkit", 1), ("channels", 1), ("replay", 1), ("reports", 0)):
        users = [module for module, path in modules(f"hindflight.{package}").items() if NATIVE in imported(path)]
        assert len(users) == most, f"{package}: {', '.join(users)}"
    outside = [m for top in ("hindflight", *TOOLS) if top != "tests" for m in modules(top)]
    assert not [module for module in outside if NATIVE in imported(MODULES[module])]


def test_packages_are_the_folders() -> None:
    """An installation holds every package of hindflight and nothing else; an editable one uses the links."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {module_name(path) for path in code_files("__init__.py")}
    assert set(settings["packages"]) == {name for name in folders if within(name, "hindflight")}
    assert settings["package-dir"] == {f"hindflight.{name}": name for name in PACKAGES}
    for name in PACKAGES:
        link = ROOT / "hindflight" / name
        assert link.is_symlink()
        assert link.readlink() == Path("..", name)


def test_every_folder_with_modules_is_a_package() -> None:
    lacking = {path.parent for path in code_files(".py")} - {path.parent for path in code_files("__init__.py")}
    assert not lacking


ANY_NUMBER = ("hindflight/cli", "replay/engine/src/cc/variants")
"""One file per command or variant: these folders may be as large as they need, and those of tests."""


def test_folders_are_small() -> None:
    count = Counter(path.parent.relative_to(ROOT) for suffix in (".py", ".rs") for path in code_files(suffix))
    large = {str(folder): n for folder, n in count.items() if n > LARGEST_FOLDER}
    assert not {
        folder: n for folder, n in large.items() if folder not in ANY_NUMBER and folder.split("/")[0] != "tests"
    }


def test_files_are_short() -> None:
    lines = {path: path.read_text().count("\n") for suffix in (".py", ".rs") for path in code_files(suffix)}
    assert not {str(path): count for path, count in lines.items() if count > LARGEST_FILE}


CHOICES = {
    "Profile": ("config/", "cc/variants/", "cc/decrease.rs", "tcp/stack_rules.rs"),
    "Algorithm": ("tcp/stack_rules.rs", "tcp/recovery/", "tcp/sender/mod.rs"),
    "Variant": (),
}
"""Where the engine may name a profile, a recovery algorithm or a variant: `config`, definitions of variants, and the
places that choose once per connection."""


def engine_code() -> dict[str, str]:
    """Each file of the engine by its path in `src`, without comments and tests."""
    source = ROOT / "replay" / "engine" / "src"
    files = {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8") for path in source.rglob("*.rs")}
    support = re.compile(r"(^|/)(tests|ladder|invariants)(/|\.rs$)")
    return {
        name: re.sub(r"//.*", "", text.split("#[cfg(test)]\nmod ")[0])
        for name, text in files.items()
        if not support.search(name)
    }


@pytest.mark.parametrize("choice", CHOICES)
def test_the_engine_names_profiles_and_variants_only_where_it_chooses(choice: str) -> None:
    named = {name for name, text in engine_code().items() if re.search(rf"\b{choice}::[A-Z]\w*[a-z]", text)}
    assert bool(named) == bool(CHOICES[choice])
    assert not {name for name in named if not name.startswith(CHOICES[choice])}


def test_the_engine_has_no_name_of_a_variant_in_quotes_elsewhere() -> None:
    names = {variant.name for variant in catalogue()}
    for name, text in engine_code().items():
        if not name.startswith(("config/", "cc/variants/", "cc/catalogue.rs")):
            assert not names & set(re.findall(r'"([a-z0-9-]+)"', text)), name


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
    assert set(dir(hindflight)) >= PUBLIC_NAMES
    for name in PUBLIC_NAMES:
        assert getattr(hindflight, name) is not None


def python(script: str, cwd: Path = ROOT) -> str:
    """Run `script` in a separate Python process and return what it prints."""
    ended = subprocess.run([sys.executable, "-c", script], cwd=cwd, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_importing_hindflight_is_light() -> None:
    shown = "[n for n in sys.modules if n.startswith('hindflight.') or n in ('pyarrow', 'numpy', 'typer', 'polars')]"
    assert python(f"import sys, hindflight; dir(hindflight); print({shown})") == "[]"


def test_replay_is_a_function_and_a_package() -> None:
    script = "import hindflight as hf; import hindflight.replay.catalogue as c; "
    assert python(f"{script} print(callable(hf.replay), hf.replay.catalogue is c)") == "True True"


def test_folders_of_the_user_do_no_harm(tmp_path: Path) -> None:
    """Modules that happen to be called like our folders, in the working directory and before ours on the path."""
    for name in ("channels", "toolkit"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('a foreign package was imported')\n")
    for name in ("replay", "reports"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a foreign module was imported')\n")
    script = "import sys, hindflight.__main__ as m; sys.argv[1:] = ['variants', '--json']; sys.exit(m.main())"
    assert "newreno" in python(script, tmp_path)


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
    names = re.compile(
        r"(?:\]\(|`)((?:docs|toolkit|channels|replay|reports|hindflight|validation|benches|fixtures|tests)/[\w./-]*\w)"
    )
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


def test_the_page_on_architecture_names_files_that_exist() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    named = [name for name in re.findall(r"`([a-z_]+(?:/[a-z_.]+)*/?)`", text) if "/" in name]
    assert len(named) > 50
    folders = (ROOT, ROOT / "replay/engine/src")
    assert not [name for name in named if not any((folder / name).exists() for folder in folders)]
