"""Hindflight from Python: open a capture or a workspace and get its tables."""

from __future__ import annotations
