"""Optuna over the parameters of the templates of ``template``, through its ask-and-tell interface. Needs no model.

``--set sampler=tpe`` (the default) or ``random``, which is best of N over the same space. A choice that was evaluated
already costs no attempt: its value is told again. Needs ``pip install 'kernelbench[search]'``.
"""

from kernelbench.solvers.kernelband.features import time_of
from kernelbench.solvers.kernelband.template_author import body
from kernelbench.solvers.plan import SolverError
from kernelbench.solvers.task import Candidate
from kernelbench.solvers.templates.patterns import NoTemplate
from kernelbench.solvers.templates.plans import fitting

REPEATS = 200  # of choices that are known already, in a row, after which the space counts as searched


def solve(task):
    try:
        import optuna
    except ImportError:
        raise SolverError("this solver needs Optuna: pip install 'kernelbench[search]'") from None
    try:
        plans = fitting(task)
    except NoTemplate as reason:
        task.say(f"no template fits: {reason}")
        return
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    samplers = {"tpe": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
    study = optuna.create_study(sampler=samplers[task.option("sampler", "tpe")](seed=task.seed))
    known, repeats = {}, 0  # time in ms by source, None of a failure
    while task.budget and repeats < REPEATS:
        trial = study.ask()
        plan = plans[trial.suggest_categorical("template", list(range(len(plans))))]
        choice = {
            name: trial.suggest_categorical(f"{plan.template} {name}", values) for name, values in plan.space.items()
        }
        if not plan.fits(choice):
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            repeats += 1
            continue
        source = body(plan, choice)
        repeats = repeats + 1 if source in known else 0
        if source not in known:
            known[source] = time_of((yield Candidate(plan.source(choice), plan.kind)))
        if known[source] is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, known[source])
