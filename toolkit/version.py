"""The version of the installed distribution, and of the programs that wrote the tables."""

from __future__ import annotations

from importlib.metadata import version


def hindflight_version() -> str:
    """Return the version of the installed `hindflight`."""
    return version("hindflight")


def versions() -> dict[str, str]:
    """Return the versions that a result depends on, for the provenance of a workspace and a report."""
    import platform

    return {"hindflight": hindflight_version(), "python": platform.python_version(), "pyarrow": version("pyarrow")}
