"""Writes tables in the formats of other tools: packets (pcapng), graphs (xplot), rows (CSV, JSON, Parquet, SQLite).

Reads workspaces, never a capture. Read docs/export.md.
"""
