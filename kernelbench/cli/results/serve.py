"""`kb serve`"""

from __future__ import annotations

from pathlib import Path

import click

from kernelbench.cli import UNFIT, WRONG_USAGE, fail, say
from kernelbench.report.server import Feed, Server
from kernelbench.run import RunError
from kernelbench.suite import SelectorError


@click.command("serve")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one.")
def command(run: Path, port: int) -> None:
    """Show a run in the browser while it is going: new results appear as they come.

    It answers on 127.0.0.1 only, and to the printed address, which nobody guesses. To see a run on another machine:
    ssh -L 8000:127.0.0.1:8000 MACHINE.

    \b
    Examples:
      kb serve runs/mine
      kb serve runs/mine --port 0
    """
    try:
        server = Server(Feed(run), port)
    except (RunError, SelectorError) as error:
        fail(error, WRONG_USAGE)
    except OSError as error:
        fail(f"cannot listen on port {port}: {error.strerror}; choose another --port, or 0 for a free one", UNFIT)
    say(f"{run} is at {server.url} (Ctrl-C ends)")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
