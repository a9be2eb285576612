"""Scenarios, replays through the engine, self-check and comparison (see docs/scenario.md).

A room of hindflight.
"""
