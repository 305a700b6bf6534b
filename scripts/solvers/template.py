"""No model: fill a template of CUDA (or C++ on a CPU) with the formula of the problem, and search its parameters.

Every template that fits is tried with its default parameters; then the best one's neighbours, one
parameter changed at a time, ``--set batch=4`` of them built at once. It stops where no neighbour is
faster, or with the budget. What fits: elementwise operators, reductions, norms and softmax, losses, matrix products.
"""

from itertools import islice

from kernelbench.metrics.settled import rank
from kernelbench.solvers.task import Candidate
from kernelbench.solvers.templates.patterns import NoTemplate
from kernelbench.solvers.templates.plans import fitting


def solve(task):
    try:
        plans = fitting(task)
    except NoTemplate as reason:
        task.say(f"no template fits: {reason}")
        return
    tried, best = set(), None  # best: result, plan, choice
    wanted = [(plan, plan.default) for plan in plans]
    while wanted:
        tried |= {body(plan, choice) for plan, choice in wanted}
        parent = best and best[0]
        results = yield [Candidate(plan.source(choice), plan.kind, parent=parent) for plan, choice in wanted]
        correct = [(result, *made) for result, made in zip(results, wanted) if result.correct]
        faster = max(correct, key=lambda made: rank(made[0]), default=None)
        if faster and (best is None or rank(faster[0]) > rank(best[0])):
            best = faster
        if best is None:
            return
        _, plan, choice = best
        untried = ((plan, other) for other in plan.neighbours(choice) if body(plan, other) not in tried)
        wanted = list(islice(untried, int(task.option("batch", "4"))))


def body(plan, choice):
    """The source without the comments that name the choice: parameters without effect make no other candidate."""
    return plan.source(choice).split("\n", 2)[2]
