"""The script of a page: Vega, Vega-Lite and Vega-Embed as one piece, made once and, if asked early, in the background.

Light to import: those who will write a report call `prepare` first and go on with their work.
"""

from __future__ import annotations

import threading
from functools import cache

_MAKING = threading.Lock()


def prepare() -> None:
    """Begin to make the script in the background."""
    threading.Thread(target=vega_bundle, name="vega bundle", daemon=True).start()


def vega_bundle() -> str:
    """Return a script that sets `window.vegaEmbed`. Takes 2 s the first time."""
    with _MAKING:
        return _make()


@cache
def _make() -> str:
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=vega_lite_version())
    return script


def vega_lite_version() -> str:
    """Return the version of Vega-Lite that Altair writes, as vl-convert names it ("6.4")."""
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
