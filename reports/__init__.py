"""Charts and documents out of the tables. Knows toolkit.schema and nothing of captures, engines or workspaces.

A room of hindflight.
"""
