"""The engine's split proxy compared with a relay of two sockets between two Linux stacks.

`testbed` records runs, `links` draws what is recorded, `recorded` reads a run, `rebuild` makes the engine's
configuration of it, `judge` compares, and `readings` counts the runs that hold; `ends` runs in the network namespaces.
"""
