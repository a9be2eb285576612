"""Channels: models, extraction from captures, fits, and the file formats of other tools."""
