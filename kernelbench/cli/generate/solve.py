"""`kb solve`"""

from __future__ import annotations

import sys
from pathlib import Path

import click
from tabulate import tabulate

from kernelbench.cli import UNFIT, say, say_json
from kernelbench.cli.evaluation_options import condition_options, exit_statuses, options_of
from kernelbench.cli.grouped import GroupedCommand
from kernelbench.cli.model_options import model_options, read_pairs
from kernelbench.endpoint import ModelError
from kernelbench.metrics import workloads
from kernelbench.solvers import script
from kernelbench.solvers.orchestrator import solve
from kernelbench.solvers.plan import Outcome, Plan, SolverError
from kernelbench.solvers.program import Program
from kernelbench.solvers.progress import Display
from kernelbench.solvers.prompting.prompts import Prompts
from kernelbench.views import leaderboard


def _list(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        rows = [(name, script.summary(path)) for name, path in script.shipped().items()]
        say(tabulate(rows, ("solver", ""), disable_numparse=True))
        context.exit()


@click.command("solve", cls=GroupedCommand)
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list,
              help="List the solvers of the package.")  # fmt: skip
@click.option("--solver", metavar="NAME", help="One of --list, or a script with solve(task).")
@click.option("--solver-command", metavar="COMMAND", help="A program in any language: docs/solvers.md.")
@click.option("--problems", "selector", metavar="SELECTOR", required=True, help="1/19, 1/1-20, level2, llm, all, ...")
@click.option("--budget", type=click.IntRange(min=1), default=1, show_default=True, help="Attempts a problem.")
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Run directory.")
@click.option("--resume", is_flag=True, help="Continue the run in --out.")
@model_options()
@click.option(
    "--prompts",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with prompts of your own.",
)
@click.option(
    "--set", "settings", multiple=True, callback=read_pairs, metavar="NAME=VALUE", help="Setting for the solver."
)
@click.option("--at-once", type=click.IntRange(min=1), default=16, show_default=True, help="Problems in flight.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the solver's random choices.")
@condition_options
@click.option("--json", "as_json", is_flag=True, help="Print the leaderboard as JSON.")
def command(
    solver, solver_command, selector, budget, out, resume, endpoint_of, prompts, settings, at_once, seed,
    problem_dir, as_json, **conditions,
) -> None:  # fmt: skip
    """Let a solver write solutions, evaluate them, and keep everything.

    \b
    Examples:
      kb solve --list
      kb solve --solver template --problems 1/25,1/36 --budget 8 -o runs/template
      kb solve --solver refine --problems level1 --budget 10 -o runs/refine \\
        --model MODEL --base-url http://localhost:8000/v1 --set feedback=G+E+P
      kb solve --solver-command ./my_solver.sh --problems 1/19 --budget 3 -o runs/mine
    """
    if (solver is None) == (solver_command is None):
        raise click.UsageError("give either --solver or --solver-command")
    display = Display()
    kept = f"every answer and result is kept. Continue with --resume and --out {out}"
    with exit_statuses(display, lambda: kept, SolverError, ModelError):
        options = options_of(**conditions)
        if options.stored or workloads.are_several(options.workload):
            raise click.UsageError("a solver is told one time: give it one --workload, and baselines timed in turn")
        chosen = script.Script(script.find(solver)) if solver else Program(solver_command)
        plan = Plan(chosen, budget, endpoint_of(at_once=at_once), Prompts(prompts), settings, seed, at_once)
        outcome = solve(
            plan, selector, options, out, resume=resume, problem_dir=problem_dir, watcher=display
        )
    _print(outcome, as_json)
    if outcome.failures:
        sys.exit(UNFIT)


def _print(outcome: Outcome, as_json: bool) -> None:
    data = leaderboard.summary(outcome.run, outcome.problems)
    if as_json:
        say_json(data)
        return
    parts = [leaderboard.result_table(outcome.run.latest())]
    if outcome.failures:
        lines = [f"    {problem}: {reason}" for problem, reason in outcome.failures.items()]
        parts.append(f"Not finished ({len(lines)}); continue with --resume:\n" + "\n".join(lines))
    parts += [leaderboard.fast_p_table(data), f"Results: {outcome.run.path}"]
    say("\n\n".join(parts))
