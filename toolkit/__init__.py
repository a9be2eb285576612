"""Tables and their schema, ingest, reconstruction, workspace and command line (see docs/tables.md).

A room of hindflight.
"""
