"""A capture at the receiver as a capture at the sender would have it: segments when they left, ACKs when they arrived.

The segments that were lost on the way are among them. Depends on the tables alone. Read docs/sender-view.md.
"""
