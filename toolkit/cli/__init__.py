"""The command line. The composition root: it may see every room, and no room sees it (see CONTRIBUTING.md)."""
