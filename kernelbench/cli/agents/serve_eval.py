"""`kb serve-eval`"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kernelbench.cli import UNFIT, device_option, fail, say
from kernelbench.evaluation.executor import EXECUTORS


@click.command("serve-eval")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8111, show_default=True, help="0 takes a free one.")
@device_option(several=True)
@click.option("--problem-dir", type=click.Path(path_type=Path, exists=True), help="Another folder of problems.")
@click.option("--queue", "most", type=click.IntRange(1), default=1000, show_default=True,
              help="Submissions that may wait or run; more are told to come later.")  # fmt: skip
@click.option("--executor", type=click.Choice(sorted(EXECUTORS)), default="local", show_default=True,
              help="Where it evaluates: this host, or the nodes of a Ray cluster.")  # fmt: skip
@click.option("--address", help="Of the Ray cluster. Without it, the one that Ray finds, or one on this host.")
def command(folder, host, port, device, problem_dir, most, executor, address) -> None:
    """Serve evaluations over HTTP: for training runs, search and agents on other machines.

    DIR keeps the queue and the file `tokens`, with a client's name and its token a line; both are made where
    they are missing. What was accepted is answered, whatever ends meanwhile: start it again with the same DIR.

    \b
    Examples:
      kb serve-eval service
      kb serve-eval service --device cuda:all --port 8111
      ssh -L 8111:127.0.0.1:8111 MACHINE        # from where the client runs
    """
    if address and executor == "local":
        raise click.UsageError("--address needs --executor ray")
    try:
        from kernelbench.service import server
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("harness", "kernelbench"):
            raise
        fail(f"the service needs a package ({error.name}): pip install 'kernelbench[serve]'", UNFIT)
    problems = problem_dir and problem_dir.absolute()
    intake = server.Intake("", device, problems, executor, address)

    def ready(url: str, bench: dict[str, Any]) -> None:
        say(f"{url} evaluates on {bench['devices']} x {bench['device']['name']}; tokens: {folder / server.TOKENS}")

    try:
        server.serve(server.Settings(folder.absolute(), host, port, most, intake), ready)
    except KeyboardInterrupt:
        pass  # how it is ended
    except (server.EnvironmentUnfit, server.StoreError, server.TokenError) as error:
        fail(error, UNFIT)
    except OSError as error:
        fail(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port, or 0 for a free one", UNFIT)
