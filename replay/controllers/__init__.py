"""Congestion control written in Python: the base class and its checker."""
