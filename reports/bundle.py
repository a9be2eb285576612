"""The JavaScript bundle of a report: Vega, Vega-Lite and Vega-Embed in one script, built once per process.

The build takes 2 s. A caller that will write a report calls `prepare` early, so that the build runs in the background.
This module imports nothing heavy.
"""

from __future__ import annotations

import threading
from functools import cache

_LOCK = threading.Lock()


def prepare() -> None:
    """Start to build the bundle in the background and return at once."""
    threading.Thread(target=vega_bundle, name="vega bundle", daemon=True).start()


def vega_bundle() -> str:
    """Return a script that sets `window.vegaEmbed`. The first call takes 2 s, later ones return the same script."""
    with _LOCK:
        return _build()


@cache
def _build() -> str:
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=vega_lite_version())
    return script


def vega_lite_version() -> str:
    """Return the version of Vega-Lite that Altair writes, in the format of vl-convert ("6.4")."""
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
