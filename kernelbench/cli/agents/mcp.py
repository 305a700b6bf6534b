"""`kb mcp`"""

from __future__ import annotations

from pathlib import Path

import click

from kernelbench.attempt.warm_place import IDLE_S
from kernelbench.cli import UNFIT, Number, device_option, fail
from kernelbench.cli.library_option import library_option


@click.command("mcp")
@device_option()
@click.option("--problem-dir", type=click.Path(path_type=Path), help="Another folder of problems.")
@library_option
@click.option("--timeout", type=Number(min=0, min_open=True), default=120, show_default=True,
              help="Seconds that one step of a solution may take.")  # fmt: skip
@click.option("--idle", type=Number(min=1), default=IDLE_S, show_default=True,
              help="Seconds without a call after which judge and builder end.")  # fmt: skip
@click.option("--files", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Take files in this folder only, where an agent may not read others.")  # fmt: skip
def command(device, problem_dir, track, timeout, idle, files) -> None:
    """Offer problems, show, starter, check, try, time, sol, findings and profile to a coding agent over MCP.

    It speaks on standard input and output. Register it with the agent as the command `kb mcp`.

    \b
    Examples:
      kb mcp
      kb mcp --device cuda:1 --timeout 30
    """
    try:
        from kernelbench.tools.mcp_server import server
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("harness", "kernelbench"):
            raise
        fail(f"the MCP server needs a package ({error.name}): pip install 'kernelbench[mcp]'", UNFIT)
    from kernelbench.tools.catalogue import Tools

    conditions = {"device": device, "track": track, "timeout_s": timeout}
    server(Tools(problem_dir, conditions, idle, files)).run("stdio")
