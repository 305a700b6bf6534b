"""The tools over the Model Context Protocol. Needs the extra ``mcp``, https://github.com/modelcontextprotocol/python-sdk."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from kernelbench import __version__, escaping
from kernelbench.tools.catalogue import Tools

_INSTRUCTIONS = (
    "Write GPU kernels that are right and faster than PyTorch. `problems` and `show` say what to compute, `starter` "
    "gives a file to fill in, `try` judges it and says what to do next. Status `not_evaluated` with exit_status 3 is "
    "a fault of the machine, not of the kernel."
)


def server(tools: Tools) -> MCPServer:
    """Return a server that offers ``tools``, to be run."""
    made = MCPServer("kernelbench", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING")
    offered = {
        "problems": tools.problems, "show": tools.show, "starter": tools.starter, "check": tools.check,
        "try": tools.try_, "time": tools.time, "sol": tools.sol, "findings": tools.findings, "profile": tools.profile,
    }  # fmt: skip
    for name, tool in offered.items():
        made.tool(name, description=_description(tool), structured_output=True)(_told(tool))
    return made


def _description(tool: Callable) -> str:
    return " ".join(tool.__doc__.split())


def _told(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return ``tool`` with errors that the agent reads."""

    @functools.wraps(tool)
    def called(*arguments: Any, **named: Any) -> dict[str, Any]:
        try:
            return tool(*arguments, **named)
        except (ValueError, RuntimeError, OSError) as error:
            raise ToolError(escaping.terminal(str(error))) from error  # half a character would end the server

    return called
