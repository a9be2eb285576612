"""Slow, readable twins of kernels: what they compute, once more as plainly as can be, for tests to compare."""
