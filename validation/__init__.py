"""How far the engine agrees with the Linux stack, with ns-2 and with closed forms; `python -m validation` prints it.

A development tool: it is not installed with the package.

One subject per file. `recorded` reads a run of the real kernel, `rebuild` makes the engine's configuration of it,
`measured` puts numbers on either side, `divergence` names the first packet that differs, `linux` does it for a folder
of runs, `repeated` for one that was recorded again and again. `simulator` runs ns-2, `ns2` holds the engine beside it.
`formulas` holds the closed forms, `closed_forms` runs the engine beside them. `judge` says pass or miss, `tables` shows
it, `page` writes docs/validation.md. Bounds are stated where they are applied and never tuned.
"""
