"""Congestion control as recursions that are easy to check by hand, one variant per module."""
