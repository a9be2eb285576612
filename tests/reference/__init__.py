"""Slow, readable reference implementations of the kernels, for tests to compare."""
