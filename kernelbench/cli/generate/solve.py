"""`kb solve`"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from pathlib import Path

import click
from tabulate import tabulate

from harness.record.shape import LARGEST_COUNT
from kernelbench.cli import UNFIT, Number, say, say_json
from kernelbench.cli.evaluation_options import condition_options, exit_statuses, options_of
from kernelbench.cli.grouped import GroupedCommand
from kernelbench.cli.model_options import model_options, read_pairs
from kernelbench.endpoint import ModelError
from kernelbench.solvers import script
from kernelbench.solvers.orchestrator import solve, starting_kernels
from kernelbench.solvers.plan import Outcome, Plan, SolverError
from kernelbench.solvers.program import Program
from kernelbench.solvers.progress import Display
from kernelbench.solvers.prompting.prompts import Prompts
from kernelbench.solvers.schedule.limits import Limits
from kernelbench.solvers.schedule.order import SCHEDULES, UnknownSchedule, schedule_of
from kernelbench.views import leaderboard


def _list(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        rows = [(name, script.summary(path)) for name, path in script.shipped().items()]
        say(tabulate(rows, ("solver", ""), disable_numparse=True))
        context.exit()


def _schedule(context: click.Context, parameter: click.Parameter, text: str) -> str:
    try:
        schedule_of(text)
    except (UnknownSchedule, TypeError, ValueError) as error:
        raise click.BadParameter(str(error)) from None
    return text


def limit_options(command):
    """Add the limits of a whole run; the command takes them as ``limits``."""
    options = [
        click.option("--max-attempts", "attempts", type=click.IntRange(min=1), help="Attempts, over all problems."),
        click.option("--max-tokens", "tokens", type=click.IntRange(min=1), help="Tokens, over all problems."),
        click.option("--max-usd", "usd", type=Number(min=0, min_open=True),
                     help="Dollars; needs --price."),
        click.option("--max-seconds", "seconds", type=Number(min=0, min_open=True),
                     help="Wall time, with all resumptions."),
    ]  # fmt: skip

    @functools.wraps(command)
    def with_limits(*, attempts, tokens, usd, seconds, **rest):
        return command(limits=Limits(attempts, tokens, usd, seconds), **rest)

    for option in reversed(options):
        with_limits = option(with_limits)
    return with_limits


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
@click.option("--schedule", default="depth", show_default=True, callback=_schedule, metavar="NAME[:K=V,...]",
              help=f"Order of problems: {', '.join(SCHEDULES)}.")  # fmt: skip
@limit_options
@click.option("--start", type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="Directory of kernels to start from.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, LARGEST_COUNT), default=0, show_default=True,
              help="Of the solver's random choices.")  # fmt: skip
@condition_options
@click.option("--json", "as_json", is_flag=True, help="Print the leaderboard as JSON.")
def command(
    solver, solver_command, selector, budget, out, resume, endpoint_of, prompts, settings, at_once, schedule, limits,
    start, seed, problem_dir, as_json, **conditions,
) -> None:  # fmt: skip
    """Let a solver write solutions, evaluate them, and keep everything.

    \b
    Examples:
      kb solve --list
      kb solve --solver template --problems 1/25,1/36 --budget 8 -o runs/template
      kb solve --solver refine --problems level1 --budget 10 -o runs/refine \\
        --model MODEL --base-url http://localhost:8000/v1 --set feedback=G+E+P
      kb solve --solver-command ./my_solver.sh --problems 1/19 --budget 3 -o runs/mine
      kb solve --solver mantis --problems level1 --budget 40 --schedule breadth --max-tokens 20000000 -o runs/mantis \
        --model MODEL --base-url http://localhost:8000/v1
    """
    if (solver is None) == (solver_command is None):
        raise click.UsageError("give either --solver or --solver-command")
    display = Display()
    kept = f"every answer and result is kept. Continue with --resume and --out {out}"
    with exit_statuses(display, lambda: kept, SolverError, ModelError):
        options = options_of(**conditions)
        if options.stored:
            raise click.UsageError("a solver is told a speedup as it is measured: give it baselines timed in turn")
        chosen = script.Script(script.find(solver)) if solver else Program(solver_command)
        endpoint = endpoint_of(at_once=at_once)
        if limits.usd is not None and (endpoint is None or endpoint.cost_usd(1, 1) is None):
            raise click.UsageError("--max-usd needs the model's prices: give them with --price IN,OUT")
        plan = Plan(
            chosen, budget, endpoint, Prompts(prompts), settings, seed, at_once,
            schedule, limits, starting_kernels(start) if start else {},
        )  # fmt: skip
        outcome = solve(
            plan, selector, options, out, resume=resume, problem_dir=problem_dir, watcher=display
        )
    _print(outcome, as_json)
    if outcome.failures or outcome.unconfirmed:
        sys.exit(UNFIT)


def _print(outcome: Outcome, as_json: bool) -> None:
    data = leaderboard.summary(outcome.run, outcome.problems)
    if as_json:
        say_json(data)
        return
    parts = [leaderboard.result_table(outcome.run.latest())]
    if outcome.stopped:
        reasons = Counter(outcome.stopped.values())
        parts.append("\n".join(f"Stopped early: {count} problem(s), {reason}" for reason, count in reasons.items()))
    if outcome.failures:
        lines = [f"    {problem}: {reason}" for problem, reason in outcome.failures.items()]
        parts.append(f"Not finished ({len(lines)}); continue with --resume:\n" + "\n".join(lines))
    if outcome.unconfirmed:
        lines = [f"    {s.solution.problem} {s.solution.name}: {s.reason}" for s in outcome.unconfirmed]
        text = f"Best of several attempts, not measured again ({len(lines)}); continue with --resume:"
        parts.append("\n".join([text, *lines]))
    parts += [leaderboard.fast_p_table(data), f"Results: {outcome.run.path}"]
    say("\n\n".join(parts))
