"""`%%bash` for the kernels that run the site's pages: output in one piece and without colours.

IPython's own prints each chunk that it reads as a separate output, and ipykernel asks programs for colours.
"""

import os
import subprocess

from IPython.core.magic import register_cell_magic

COLOURS = ("FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR")


@register_cell_magic
def bash(_line: str, cell: str) -> None:
    """Run `cell` in bash and print its output; CalledProcessError if a command fails."""
    environment = {name: value for name, value in os.environ.items() if name not in COLOURS}
    done = subprocess.run(["bash", "-eu", "-c", cell], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout, end="")
