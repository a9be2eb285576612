"""The JavaScript bundle of a report: Vega, Vega-Lite and Vega-Embed in one script, built once per user and version.

The build takes 2 s, so the script is kept in the user's cache folder. A caller that will write a report calls `prepare`
before something that takes long, so that a first build runs in the background. This module imports nothing heavy.
"""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from hindflight.toolkit.errors import HindflightError
from hindflight.toolkit.files import write_whole

_LOCK = threading.Lock()
_SNIPPET = "window.vegaEmbed = vegaEmbed;"
"""What the script does after it has loaded its libraries."""


def prepare() -> None:
    """Read or build the bundle in the background and return at once."""
    threading.Thread(target=vega_bundle, name="vega bundle", daemon=True).start()


def vega_bundle() -> str:
    """Return a script that sets `window.vegaEmbed`. The first build takes 2 s; later calls return the same script."""
    with _LOCK:
        return _bundle()


@cache
def _bundle() -> str:
    path = _kept()
    if path is not None:
        with suppress(OSError, UnicodeDecodeError):
            digest, _, script = path.read_text("utf-8").partition("\n")
            if digest == _digest(script):
                return script
    script = _build()
    if path is not None:
        with suppress(OSError, HindflightError):  # Without a cache the next report builds it again.
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, f"{_digest(script)}\n{script}")
    return script


def _digest(script: str) -> str:
    return hashlib.sha256(script.encode()).hexdigest()


def _build() -> str:
    import vl_convert

    script: str = vl_convert.javascript_bundle(_SNIPPET, vl_version=vega_lite_version())
    return script


def _kept() -> Path | None:
    """Return where the script is kept (XDG Base Directory Specification); None for a user without a home.

    The name has all that the script depends on, so another version of it is another file.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not folder.is_absolute():
        try:
            folder = Path.home() / ".cache"
        except RuntimeError:
            return None
    made_of = f"{vega_lite_version()}-{version('vl-convert-python')}-{_digest(_SNIPPET)[:8]}"
    return folder / "hindflight" / f"vega-{made_of}.js"


def vega_lite_version() -> str:
    """Return the version of Vega-Lite that Altair writes, in the format of vl-convert ("6.4")."""
    import altair as alt

    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
