"""The old place of `toolkit.units`, for modules that still look for it here."""

from toolkit.units import PACKETS, RATE, SIZE, TIME, Quantity, format_rate, format_time

__all__ = ["PACKETS", "RATE", "SIZE", "TIME", "Quantity", "format_rate", "format_time"]
