"""One connection in the captures of two places: its packets matched, the clocks compared, delays and losses located.

Depends on the tables alone. Read docs/pairs.md.
"""
