"""What links do to packets: taken from captures, fitted to models, or synthesised. Sees `toolkit.schema`
only.

A room of hindflight.
"""
