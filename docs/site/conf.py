"""Settings of the documentation site; `make docs` builds it into build/site.

The source folder is the root of the repository, so that the links between pages work on the site as they do in the
repository.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib.metadata import version as installed_version
from inspect import isfunction
from pathlib import Path
from typing import Any

from docutils import nodes

SHELL = "%%bash\n"
HERE = Path(__file__).resolve().parent

# The kernels find the command `hindflight`, and `%%bash` of this folder.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ["IPYTHONDIR"] = str(HERE.parents[1] / "build" / "ipython")
STARTUP = Path(os.environ["IPYTHONDIR"]) / "profile_default" / "startup"
STARTUP.mkdir(parents=True, exist_ok=True)
shutil.copy(HERE / "shell_cells.py", STARTUP)

project = "Hindflight"
author = "the Hindflight authors"
copyright = author  # noqa: A001 - Sphinx's name
version = release = installed_version("hindflight")

root_doc = "docs/index"
include_patterns = ["docs/**", "CONTRIBUTING.md", "CHANGELOG.md"]
exclude_patterns = ["docs/site/**", "docs/scripts/**", "docs/scenarios/**"]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
myst_heading_anchors = 4
myst_links_external_new_tab = True
suppress_warnings = ["misc.highlighting_failure"]  # TOML fragments with "…"
nitpicky = False

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_execution_in_temp = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_format = "short"
default_role = "code"  # docstrings write names in single backticks
autodoc_inherit_docstrings = False

html_theme = "furo"
html_title = f"Hindflight {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_extra_path = ["../../build/site-extra"]

copybutton_prompt_text = "$ "


def _fill(_app: object, page: str, source: list[str]) -> None:
    """Put the public functions and the charts, as their packages list them, into the page of the API."""
    if page != "docs/reference/api":
        return
    import hindflight
    from hindflight.reports import charts

    functions = [f"hindflight.{name}" for name in hindflight.__all__ if isfunction(getattr(hindflight, name))]
    drawn = [f"hindflight.reports.charts.{name}" for name in charts.__all__ if isfunction(getattr(charts, name))]
    for mark, names in (("api-functions", functions), ("api-charts", drawn)):
        entries = "\n".join(f".. autofunction:: {name}" for name in names)
        source[0] = source[0].replace(f"```{{{mark}}}\n```", f"```{{eval-rst}}\n{entries}\n```")


def _as_shell(_app: object, tree: nodes.document) -> None:
    """Show a cell that the shell runs without the magic of its first line."""
    for block in tree.findall(nodes.literal_block):
        text = block.astext()
        if text.startswith(SHELL):
            block.children = [nodes.Text(text.removeprefix(SHELL))]
            block["language"] = "bash"


def setup(app: Any) -> None:
    """Let Sphinx call `_fill` with each page before it is parsed, and `_as_shell` after."""
    app.connect("source-read", _fill)
    app.connect("doctree-read", _as_shell)
