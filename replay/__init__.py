"""What TCP does over a channel: scenarios, runs of the engine, self-check and comparison (see docs/scenario.md)."""
