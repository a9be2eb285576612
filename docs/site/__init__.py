"""Settings of the documentation site."""
