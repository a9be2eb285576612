"""What a capture or a kernel log says: the schema of all tables, ingest, flow reconstruction and the workspace."""
