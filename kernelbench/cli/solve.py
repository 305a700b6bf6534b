"""`kb solve`"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from harness.problem import ProblemError
from kernelbench import leaderboard, shapes
from kernelbench.cli import INTERRUPTED, UNFIT, WRONG_USAGE, fail
from kernelbench.cli.evaluating import condition_options, options_of
from kernelbench.execution import EnvironmentUnfit
from kernelbench.run import RunError, WriteError
from kernelbench.solvers.display import Display
from kernelbench.solvers.endpoint import Endpoint, ModelError
from kernelbench.solvers.orchestrator import Outcome, Plan, SolverError, solve
from kernelbench.solvers.program import Program
from kernelbench.solvers.prompts import Prompts
from kernelbench.solvers.script import Script
from kernelbench.suite import SelectorError


def _pairs(context, parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for value in values:
        key, separator, text = value.partition("=")
        if not separator:
            raise click.BadParameter(f"'{value}' is not NAME=VALUE")
        pairs[key] = text
    return pairs


def _prices(context, parameter, value: str | None) -> tuple[float, float] | None:
    if value is None:
        return None
    try:
        prompt, completion = map(float, value.split(","))
    except ValueError:
        raise click.BadParameter("give two numbers, as in 0.5,1.5") from None
    return prompt, completion


@click.command("solve")
@click.option("--solver", type=click.Path(path_type=Path), help="Python script with solve(task).")
@click.option("--solver-command", metavar="COMMAND", help="Or a program in any language; docs/solvers.md says how.")
@click.option("--problems", "selector", metavar="SELECTOR", required=True, help="1/19, 1/1-20, level2, llm, all, ...")
@click.option("--budget", type=click.IntRange(min=1), default=1, show_default=True, help="Attempts for each problem.")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Run directory.")
@click.option("--resume", is_flag=True, help="Continue the run in --out; nothing is asked or evaluated again.")
@click.option("--model", help="Model that solvers ask.")
@click.option("--base-url", help="Its endpoint, of OpenAI's protocol. Without it, OpenAI's or $OPENAI_BASE_URL.")
@click.option("--key-variable", default="OPENAI_API_KEY", show_default=True, help="Environment variable with the key.")
@click.option(
    "--model-field",
    "fields",
    multiple=True,
    callback=_pairs,
    metavar="NAME=JSON",
    help="Field of every request, such as temperature=0.7; wins over the solver's, null leaves it out.",
)
@click.option("--price", "prices", callback=_prices, metavar="IN,OUT", help="USD per million tokens, for the costs.")
@click.option("--stream", is_flag=True, help="Have answers streamed, where long ones run into time limits.")
@click.option(
    "--prompts",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with prompts of your own, by the names in kernelbench/prompts.",
)
@click.option("--set", "settings", multiple=True, callback=_pairs, metavar="NAME=VALUE", help="Setting for the solver.")
@click.option("--at-once", type=click.IntRange(min=1), default=16, show_default=True, help="Problems in flight.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the solver's random choices.")
@condition_options
@click.option("--json", "as_json", is_flag=True, help="Print the leaderboard as JSON.")
def command(
    solver, solver_command, selector, budget, out, resume, model, base_url, key_variable, fields, prices, stream,
    prompts, settings, at_once, seed, problem_dir, as_json, **conditions,
) -> None:  # fmt: skip
    """Let a solver write solutions, evaluate them, and keep everything.

    \b
    Examples:
      kb solve --solver scripts/solvers/template.py --problems 1/25,1/36 --budget 8 -o runs/template
      kb solve --solver scripts/solvers/refine.py --problems level1 --budget 10 -o runs/refine \\
        --model MODEL --base-url http://localhost:8000/v1 --set feedback=G+E+P
      kb solve --solver-command ./my_solver.sh --problems 1/19 --budget 3 -o runs/mine
    """
    if (solver is None) == (solver_command is None):
        raise click.UsageError("give either --solver or --solver-command")
    display = Display()
    try:
        endpoint = None
        if model:
            endpoint = Endpoint(
                model, base_url, key_variable=key_variable, prices=prices, fields=_json_values(fields),
                at_once=at_once, stream=stream,
            )  # fmt: skip
        options = options_of(**conditions)
        if options.stored or shapes.are_several(options.workload):
            raise click.UsageError("a solver is told one time: give it one --workload, and baselines timed in turn")
        chosen = Script(solver) if solver else Program(solver_command)
        plan = Plan(chosen, budget, endpoint, Prompts(prompts), settings, seed, at_once)
        outcome = solve(
            plan, selector, options, out, resume=resume, problem_dir=problem_dir, watcher=display
        )
    except KeyboardInterrupt:
        display.close()
        click.echo("interrupted; every answer and result is kept. Continue with --resume and the same --out.", err=True)
        sys.exit(INTERRUPTED)
    except (WriteError, EnvironmentUnfit) as error:
        fail(error, UNFIT)
    except (SolverError, ModelError, SelectorError, ProblemError, RunError) as error:
        fail(error, WRONG_USAGE)
    finally:
        display.close()
    _print(outcome, as_json)
    if outcome.failures:
        sys.exit(UNFIT)


def _json_values(fields: dict[str, str]) -> dict[str, Any]:
    """Values that are no JSON are strings: effort=low needs no quotes."""
    values = {}
    for name, text in fields.items():
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values


def _print(outcome: Outcome, as_json: bool) -> None:
    data = leaderboard.summary(outcome.run, outcome.problems)
    if as_json:
        click.echo(json.dumps(data, indent=2))
        return
    parts = [leaderboard.result_table(outcome.run.latest())]
    if outcome.failures:
        lines = [f"    {problem}: {reason}" for problem, reason in outcome.failures.items()]
        parts.append(f"Not finished ({len(lines)}); continue with --resume:\n" + "\n".join(lines))
    parts += [leaderboard.fast_p_table(data), f"Results: {outcome.run.path}"]
    click.echo("\n\n".join(parts))
