"""How far the engine agrees with the Linux stack, with ns-2 and with closed forms; `python -m validation` prints it.

A development tool: it is not installed with the package.

One subject per file. `recorded` reads a run of the real kernel, `rebuild` makes the engine's configuration of it,
`measured` measures both sides, `divergence` names the first packet that differs, `linux` does it for a folder
of runs, `repeated` for one that was recorded many times. `simulator` runs ns-2, `ns2` compares the engine with it.
`formulas` holds the closed forms, `closed_forms` compares the engine with them. `judge` gives the verdicts, `tables`
shows them, `page` writes docs/validation.md. Bounds are stated where they are applied and never tuned.
"""
