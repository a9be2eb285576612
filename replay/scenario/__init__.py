"""The scenario file: its model and quantities, their validation, and drafting from a capture."""
