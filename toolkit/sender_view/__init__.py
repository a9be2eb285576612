"""A capture at the receiver as a capture at the sender would have it: segments when they left, ACKs when they arrived.

The segments that were lost on the way are among them. write.py reads and writes captures; the other modules depend on
the tables alone. Read docs/sender-view.md.
"""
