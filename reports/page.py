"""From sections to one HTML page that needs nothing else: scripts, styles and data inside, no address outside.

Knows Jinja2, vl-convert and what a browser allows; knows no table. The page forbids itself every request (Content
Security Policy) and every script but its own two (by their hash), so that a name from a capture stays a name.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hindflight.reports.bundle import vega_bundle
from hindflight.reports.charts.axes import ZOOM
from hindflight.reports.frames import TIME
from hindflight.reports.sections import Picture, Section
from hindflight.reports.style import DARK, vega_config
from hindflight.toolkit.seal import EMPTY_SEAL
from hindflight.toolkit.text import printable


@dataclass(slots=True)
class Drawing:
    """What the template needs of a picture: its number in the page's list of charts, and its words."""

    number: int
    title: str
    notes: list[str]
    description: str
    how: str
    height: int


@dataclass(slots=True)
class Store:
    """All charts of a page: specifications, and their data sets once each."""

    charts: list[dict[str, Any]] = field(default_factory=list)
    datasets: dict[str, Any] = field(default_factory=dict)

    def add(self, picture: Picture) -> Drawing:
        """Take in a chart; its title and notes go into the page's text."""
        spec = picture.chart.to_dict(validate=False)
        self.datasets.update(spec.pop("datasets", {}))
        title = spec.pop("title", {})
        linked = any(param.get("name") == ZOOM for param in spec.get("params", ()))
        chart = {
            "spec": spec,
            "group": picture.group if linked else "",
            "columns": spec.get("columns", 0) if "concat" in spec else 0,
        }
        if not chart["columns"]:
            spec["width"] = "container"
        self.charts.append(chart)
        notes, height = title.get("subtitle", []), spec.get("height", 400)
        return Drawing(len(self.charts) - 1, title["text"], notes, spec["description"], picture.how, height)

    def to_json(self) -> str:
        """Return everything the page's script needs, inert inside a script element."""
        configs = {mode: vega_config(mode) for mode in ("light", "dark")}
        whole = {
            "charts": self.charts,
            "datasets": self.datasets,
            "configs": configs,
            "dark": DARK,
            "zoom": f"{ZOOM}_{TIME}",
        }
        text = json.dumps(whole, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def render(title: str, lead: str, generated: str, sections: list[Section]) -> str:
    """Return the page, its digest yet to be filled in.

    Everything that comes from tables is escaped, by Jinja2 in text and by hand in data."""
    store = Store()
    environment = Environment(
        loader=PackageLoader("hindflight.reports", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["draw"] = store.add
    environment.tests["grid"] = lambda part: hasattr(part, "head")
    environment.tests["picture"] = lambda part: isinstance(part, Picture)
    environment.tests["section"] = lambda part: isinstance(part, Section)
    body = environment.get_template("body.html.j2").render(
        title=title, lead=lead, generated=generated, sections=sections
    )
    scripts = [_inline(vega_bundle()), _inline(_asset("report.js"))] if store.charts else []
    return environment.get_template("page.html.j2").render(
        title=title,
        policy=_policy(scripts),
        seal=EMPTY_SEAL,
        style=Markup(_asset("report.css")),  # noqa: S704  (ours, not the user's)
        body=Markup(body),  # noqa: S704  (rendered with escaping, just above)
        data=Markup(store.to_json()),  # noqa: S704  (no "<" in it)
        scripts=[Markup(script) for script in scripts],  # noqa: S704  (ours and Vega's)
    )


def _shown(value: Any) -> Any:
    """What the template prints of a value: text of others without control characters, markup of ours as it is."""
    return printable(value, keep="\n\t") if type(value) is str else value


@cache
def _asset(name: str) -> str:
    return (files("hindflight.reports") / "assets" / name).read_text(encoding="utf-8")


def _inline(script: str) -> str:
    """Return a script that can stand in an HTML element, its line ends as a parser leaves them."""
    return script.replace("\r\n", "\n").replace("\r", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: list[str]) -> str:
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    # Vega compiles its expressions with Function(): 'unsafe-eval'. Its marks and menus carry style attributes.
    script_source = f"{allowed} 'unsafe-eval'" if allowed else "'none'"
    return f"default-src 'none'; script-src {script_source}; style-src 'unsafe-inline'; img-src data: blob:"
