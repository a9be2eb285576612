"""The engine's split proxy compared with a relay of two sockets between two Linux stacks.

`testbed` records runs, `links` draws what is recorded, `recorded` reads a run, `rebuild` makes the engine's
configuration of it, and `judge` compares; `ends` runs in the network namespaces.
"""
