"""Runs of a scenario: engine inputs, self-check, comparison, sensitivity and summary."""
