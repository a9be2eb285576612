"""Renders sections as one self-contained HTML page with its scripts, styles and data.

The page's Content Security Policy forbids all requests, and all scripts except the page's two, which it names by their
hash. Text from a capture therefore cannot run as a script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hindflight.reports.bundle import vega_bundle
from hindflight.reports.charts.axes import ZOOM
from hindflight.reports.frames import TIME
from hindflight.reports.inert import inert
from hindflight.reports.legend import LegendEntry, legend_of
from hindflight.reports.sections import Figure, Finding, Notice, Section
from hindflight.reports.style import DARK, vega_config
from hindflight.reports.texts import HOW_TO_ZOOM
from hindflight.toolkit.seal import EMPTY_SEAL
from hindflight.toolkit.text import printable


@dataclass(slots=True)
class Drawing:
    """Index of a chart on the page, its anchor, its texts, its legend, its height [px], and whether it zooms."""

    number: int
    key: str
    title: str
    notes: list[str]
    description: str
    caption: str
    height: int
    legend: list[LegendEntry]
    zooms: bool
    says_how: bool
    """It is the first chart that zooms, next to which a sentence says how."""
    commands: tuple[str, ...]


@dataclass(slots=True)
class Store:
    """Specifications of all charts of a page; charts share their data sets."""

    charts: list[dict[str, Any]] = field(default_factory=list)
    datasets: dict[str, Any] = field(default_factory=dict)

    def add(self, figure: Figure) -> Drawing:
        """Add a chart. Its title and notes move from the specification to the page's text."""
        spec = inert(figure.spec)
        self.datasets.update(spec.pop("datasets", {}))
        title = spec.pop("title", {})
        linked = any(param.get("name") == ZOOM for param in spec.get("params", ()))
        for param in spec.get("params", ()):
            if param.get("name") == ZOOM:  # The page's script moves the scales; the selection only binds them.
                param["select"].update(translate=False, zoom=False)
        chart = {
            "spec": spec,
            "title": title["text"],
            "group": figure.group if linked else "",
            "columns": spec.get("columns", 0) if "concat" in spec else 0,
        }
        if not chart["columns"]:
            spec["width"] = "container"
        first = linked and not any(other["group"] for other in self.charts)
        self.charts.append(chart)
        return Drawing(
            number=len(self.charts) - 1,
            key=figure.key,
            title=title["text"],
            notes=title.get("subtitle", []),
            description=spec["description"],
            caption=figure.caption,
            height=spec.get("height", 0),
            legend=legend_of(spec),
            zooms=linked,
            says_how=first,
            commands=figure.commands,
        )

    def to_json(self) -> str:
        """Return the data of the page's script as JSON that is safe in a script element."""
        configs = {mode: vega_config(mode) for mode in ("light", "dark")}
        data = {
            "charts": self.charts,
            "datasets": self.datasets,
            "configs": configs,
            "dark": DARK,
            "zoom": f"{ZOOM}_{TIME}",
        }
        text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def render(title: str, generated: str, sections: list[Section]) -> str:
    """Return the page as HTML, with an empty digest (toolkit/seal.py).

    Jinja2 escapes text from tables; `Store.to_json` escapes data.
    """
    store = Store()
    environment = Environment(
        loader=PackageLoader("hindflight.reports", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["unbroken"] = _unbroken
    environment.globals["draw"] = store.add
    environment.globals["how_to_zoom"] = HOW_TO_ZOOM
    environment.tests["grid"] = lambda part: hasattr(part, "head")
    environment.tests["figure"] = lambda part: isinstance(part, Figure)
    environment.tests["section"] = lambda part: isinstance(part, Section)
    environment.tests["finding"] = lambda part: isinstance(part, Finding)
    environment.tests["notice"] = lambda part: isinstance(part, Notice)
    body = environment.get_template("body.html.j2").render(title=title, generated=generated, sections=sections)
    scripts = [_inline(vega_bundle()), _inline(_asset("report.js"))] if store.charts else []
    return environment.get_template("page.html.j2").render(
        title=title,
        policy=_policy(scripts),
        seal=EMPTY_SEAL,
        style=Markup(_asset("report.css")),  # noqa: S704  (a file of this package)
        body=Markup(body),  # noqa: S704  (Jinja2 has escaped it)
        data=Markup(store.to_json()),  # noqa: S704  (contains no "<")
        scripts=[Markup(script) for script in scripts],  # noqa: S704  (files of this package and of Vega)
    )


def _shown(value: Any) -> Any:
    """Return a value as the template prints it: text from input without control characters, markup unchanged."""
    return printable(value, keep="\n\t") if type(value) is str else value


def _unbroken(sentence: str) -> str:
    """Return a sentence in which no line breaks between a number and its percent sign."""
    return re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", sentence)


@cache
def _asset(name: str) -> str:
    return (files("hindflight.reports") / "assets" / name).read_text(encoding="utf-8")


def _inline(script: str) -> str:
    """Return a script that is safe in a script element, with the line ends that an HTML parser gives it."""
    return script.replace("\r\n", "\n").replace("\r", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: list[str]) -> str:
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    # Vega compiles its expressions with Function(): 'unsafe-eval'. Its marks and menus carry style attributes.
    script_source = f"{allowed} 'unsafe-eval'" if allowed else "'none'"
    return f"default-src 'none'; script-src {script_source}; style-src 'unsafe-inline'; img-src data: blob:"
