"""The gate: which limits hold for a result, and what an exit status rests on."""

import copy
from pathlib import Path

import pytest
from logs import judged, result, run, timing

from harness.result import Status
from harness.solution.discover import Solution, read_solution
from kernelbench.evaluation.directory import Outcome
from kernelbench.evaluation.executor import Skipped
from kernelbench.gate import build_check
from kernelbench.gate.thresholds import (
    Allowed,
    Limits,
    check_directory,
    check_outcome,
    check_result,
    exit_status,
    unstable_cases,
)
from kernelbench.run import Run

H100 = Path(__file__).parents[3] / "results" / "h100"
REGRESSION = Limits(max_regression=0.05)


def broken(found, limits, against=None):
    return check_result(found, limits, against).broken


def test_ok_is_required_unless_another_status_is_allowed():
    failed = result("1/1", status=Status.WRONG_VALUE, message="element 3 is 1, expected 2")
    assert broken(failed, Limits()) == ["wrong_value, and must be ok: element 3 is 1, expected 2"]
    assert broken(failed, Limits(require=frozenset({Status.OK, Status.WRONG_VALUE}))) == []


def test_what_fails_on_held_out_workloads_fails_the_gate():
    """They were asked for, and nothing came of them."""
    one = {"status": "ok", "draw": "", "message": "", "median_ms": 1.0, "baseline_ms": 2.0, "speedup": 2.0,
           "verdict": "faster", "interval": [1.9, 2.1]}  # fmt: skip
    kept = result("1/1", 0.5, held_out=[one, one])
    assert broken(kept, Limits()) == []
    kept.held_out[1] = one | {"status": "wrong_value", "message": "off"}
    assert broken(kept, Limits()) == [
        "specialised: it fails on 1 of 2 held-out workloads (wrong_value: off)"
    ]  # fmt: skip


def unstable(found):
    """The same result, whose judge says that its times did not settle."""
    found = copy.deepcopy(found)
    found.baselines["eager"] |= {"verdict": "unstable", "interval": [found.speedup * 0.7, found.speedup * 1.4]}
    return found


def untimed(problem="1/1", **fields):
    found = result(problem, 0.5, **fields)
    found.speedup, found.baselines = None, {"compile": {"error": "InductorError: no C++ compiler"}}
    return found


def test_what_is_slower_beyond_doubt_is_under_the_minimum():
    assert broken(result("1/1", 0.5), Limits(min_speedup=1.5)) == []
    (text,) = broken(result("1/1", 0.5), Limits(min_speedup=2.5))
    assert text.startswith("speedup 2.0") and ", interval " in text and text.endswith("is under 2.5x")


def test_a_tie_is_not_slower_and_not_proven_faster():
    tie = result("1/1", 1.003, seed=3)
    assert tie.speedup < 1 and broken(tie, Limits(min_speedup=1)) == []
    (text,) = broken(tie, Limits(prove_speedup=1))
    assert "1.00x (tie)" in text and text.endswith("is not proven to be over 1x")
    assert broken(result("1/1", 0.5), Limits(prove_speedup=1)) == []
    assert broken(result("1/1", 0.5), Limits(prove_speedup=2.5)) != []


@pytest.mark.parametrize("limits", [Limits(min_speedup=1), Limits(prove_speedup=1), REGRESSION])
def test_unstable_is_neither_passed_nor_failed(tmp_path, limits):
    check = check_result(unstable(result("1/1", 0.5)), limits, run(tmp_path / "before"))
    assert check.broken == [] and "unstable" in check.undecided[0] and exit_status([check]) == 3
    assert exit_status([check_result(unstable(result("1/1", 0.5)), Limits())]) == 0


@pytest.mark.parametrize("limits", [Limits(min_speedup=1), Limits(prove_speedup=1), REGRESSION])
def test_a_correct_result_without_a_speedup_is_undecided_and_says_why(tmp_path, limits):
    check = check_result(untimed(), limits, run(tmp_path / "before"))
    assert check.broken == [] and exit_status([check]) == 3
    assert "no baseline could be timed: compile: InductorError: no C++ compiler" in check.undecided[0]
    assert exit_status([check_result(untimed(), Limits())]) == 0


def test_what_was_untimed_or_unstable_before_has_nothing_to_regress_from(tmp_path):
    now = result("1/1", 1.0, name="relu.cu")
    for number, before in enumerate((untimed(name="relu.cu"), unstable(now))):
        check = check_result(now, REGRESSION, run(tmp_path / str(number), before))
        assert check.broken == check.undecided == [] and "no regression looked for: before, " in check.unchecked[0]


def test_unstable_cases_are_those_under_a_limit_on_speed():
    results = [unstable(result("1/1", 1.0)), result("1/2", 1.0), result("1/3", status=Status.TIMEOUT)]
    assert unstable_cases(results, Limits(min_speedup=1)) == {("1/1", "level1/1_s0.py", "small")}
    assert unstable_cases(results, Limits()) == frozenset()
    results[0].held_out = [{"status": "wrong_value", "draw": "", "message": "off"}]
    assert unstable_cases(results, Limits(min_speedup=1)) == frozenset(), "others would be drawn"


def test_of_references_against_themselves_all_but_the_unstable_ones_pass():
    """Their point estimates lie on either side of 1, and say nothing."""
    results = Run.load(H100 / "references").latest()
    checks = [check_result(r, Limits(min_speedup=1)) for r in results]
    assert sum(r.speedup < 1 for r in results) > 100
    assert not any(check.broken for check in checks)
    undecided = [check for check in checks if check.undecided]
    assert len(checks) == 250 and len(undecided) == 9 and all("unstable" in c.undecided[0] for c in undecided)
    assert exit_status(checks) == 3 and exit_status(set_apart(checks, undecided)) == 0


def set_apart(checks, others):
    return [check for check in checks if check not in others]


def outcome(path, *results, problems=("1/1",), found=None, selector=None, **fields):
    made = run(path, *results, problems=selector)
    found = {(r.problem, r.solution["name"]) for r in results} if found is None else found
    return Outcome(made, {"type": "cpu"}, 1, list(problems), root=path, found=frozenset(found), **fields)


def status(gaps):
    return exit_status([check_result(result("1/9", 1.0), Limits()), *gaps])


def test_a_file_that_maps_to_nothing_fails_unless_it_is_allowed(tmp_path):
    seen = outcome(tmp_path, result("1/1", 1.0), unmapped=[(tmp_path / "notes.py", "maps to no problem")])
    (gap,), _ = check_directory(seen, None, Allowed())
    assert gap.name == "notes.py" and gap.broken == ["maps to no problem (--allow-unmapped accepts it)"]
    assert status([gap]) == 1
    gaps, notes = check_directory(seen, None, Allowed(unmapped=True))
    assert status(gaps) == 0 and notes == ["- notes.py: maps to no problem"]


def test_a_selected_problem_without_a_solution_fails_unless_it_is_allowed(tmp_path):
    seen = outcome(tmp_path, result("1/1", 1.0), problems=["1/1", "1/2"], selector="1/1-2")
    (gap,), _ = check_directory(seen, None, Allowed())
    assert gap.problem == "1/2" and "has no solution (--allow-missing accepts it)" in gap.broken[0]
    assert status([gap]) == 1 and status(check_directory(seen, None, Allowed(missing=True))[0]) == 0


def test_a_kernel_that_the_compared_run_had_fails_unless_it_is_allowed(tmp_path):
    before = run(tmp_path / "before", result("1/1", 1.0), result("1/2", 1.0, name="gone.cu"))
    seen = outcome(tmp_path / "now", result("1/1", 1.0))
    (gap,), _ = check_directory(seen, before, Allowed())
    assert (gap.problem, gap.name) == ("1/2", "gone.cu") and "but not here" in gap.broken[0]
    assert status([gap]) == 1 and status(check_directory(seen, before, Allowed(removed=True))[0]) == 0
    selected = outcome(tmp_path / "selected", result("1/1", 1.0), selector="1/1")
    assert check_directory(selected, before, Allowed()) == ([], [])


def test_what_a_resumed_log_has_of_files_that_are_gone_is_not_checked(tmp_path):
    now, gone = result("1/1", 1.0), result("1/2", status=Status.TIMEOUT)
    seen = outcome(tmp_path, now, gone, found={("1/1", now.solution["name"])})
    assert [check.problem for check in check_outcome(seen, Limits())] == ["1/1"]


def test_a_solution_without_a_result_that_counts_is_undecided(tmp_path):
    now = result("1/1", 1.0)
    seen = outcome(tmp_path, now, found={("1/1", now.solution["name"]), ("1/2", "b.py")})
    one, other = check_outcome(seen, Limits())
    assert (one.status, other.status, other.name) == (0, 3, "b.py") and "no result" in other.undecided[0]


def test_what_another_device_would_run_is_built_and_what_this_one_should_is_undecided(tmp_path):
    solution = Solution(tmp_path / "1_1.cu", "1_1.cu", "1/1", 0, "cu", "cuda", "cuda", "0")
    other = outcome(tmp_path / "other", skipped=[Skipped(solution, "reason", elsewhere=True)])
    (built,) = check_outcome(other, Limits(), builds=[(True, "built only")])
    assert exit_status([built]) == 0 and built.unchecked == ["reason; built only"]
    (failed,) = check_outcome(other, Limits(), builds=[(False, "expected ;")])
    assert exit_status([failed]) == 1 and failed.broken == ["build_error: expected ;"]
    (not_tried,) = check_outcome(other, Limits(), builds=[(None, "not built: no nvcc")])
    (here,) = check_outcome(outcome(tmp_path / "this", skipped=[Skipped(solution, "reason")]), Limits())
    assert exit_status([not_tried]) == 3 and exit_status([here]) == 3 and exit_status([]) == 3


# A compiler of Python compiles what stands behind `finally` twice, and so on.
DOUBLED = "".join(f"{' ' * n}try: pass\n{' ' * n}finally:\n" for n in range(40)) + " " * 40 + "pass"


@pytest.mark.parametrize("source", ["x" + ".a" * 5000, DOUBLED, "x = ("], ids=["deep", "doubled", "wrong"])
def test_the_syntax_of_a_source_is_looked_at_where_it_can_do_no_harm(tmp_path, source):
    (tmp_path / "1_1.py").write_text(source)
    built, said = build_check._parse(read_solution(tmp_path / "1_1.py"))
    assert built in (True, False) and said


def test_a_comment_alone_does_not_keep_a_solution_from_being_checked(tmp_path):
    """Whoever writes the solution writes its comment."""
    (tmp_path / "1_1.py").write_text("# kb: device=cuda")
    skipped = Skipped(read_solution(tmp_path / "1_1.py"), "needs a GPU", elsewhere=True)
    (check,) = check_outcome(outcome(tmp_path / "run", skipped=[skipped]), Limits(), builds=[(True, "built only")])
    assert exit_status([check]) == 3 and "its comment, device=cuda, keeps it" in check.undecided[0]


def test_what_is_for_a_cpu_is_undecided_on_a_gpu(tmp_path):
    """This machine can check it: a wrong one passed, built only."""
    (tmp_path / "1_1.cpp").write_text("")
    solution = read_solution(tmp_path / "1_1.cpp")
    skipped = Skipped(solution, solution.lacks("cuda"), elsewhere=True)
    (check,) = check_outcome(outcome(tmp_path / "run", skipped=[skipped]), Limits(), builds=[(True, "built only")])
    assert exit_status([check]) == 3 and "with --device cpu" in check.undecided[0]


def test_what_was_evaluated_here_before_and_is_for_another_device_now_is_undecided(tmp_path):
    """An import of Triton that never runs is enough for that, and a wrong solution passed."""
    (tmp_path / "1_1.py").write_text("if 0: import triton\n")
    solution = read_solution(tmp_path / "1_1.py")
    skipped = Skipped(solution, "needs a GPU", elsewhere=True)
    found = outcome(tmp_path / "run", skipped=[skipped])
    builds = [(True, "built only")]

    def before(kind):
        one = result("1/1", 1.0, name=solution.name)
        one.device = {"type": kind}
        return run(tmp_path / kind, one)

    (check,) = check_outcome(found, Limits(), before("cpu"), builds)
    assert exit_status([check]) == 3 and "it was evaluated on cpu in" in check.undecided[0]
    for earlier in (before("cuda"), None):
        (check,) = check_outcome(found, Limits(), earlier, builds)
        assert not check.undecided


def test_a_tenth_slower_is_a_regression_and_the_same_is_none(tmp_path):
    before = run(tmp_path / "before", result("1/1", 1.0, name="relu.cu", seed=1))
    assert broken(result("1/1", 1.0, name="relu.cu", seed=2), REGRESSION, before) == []
    (text,) = broken(result("1/1", 1.1, name="relu.cu", seed=2), REGRESSION, before)
    assert "speedup fell from" in text and "at most -5.0% is allowed" in text
    assert broken(result("1/1", 1.1, name="relu.cu", seed=2), Limits(max_regression=0.2), before) == []


def test_noise_is_no_regression(tmp_path):
    before = run(tmp_path / "before", result("1/1", 1.0, name="relu.cu", seed=1))
    noisy = result("1/1", 1.3, name="relu.cu", seed=2)
    noisy.timing = timing(1.3, spread=1.0)
    noisy.speedup = noisy.baselines["eager"]["median_ms"] / noisy.timing["median_ms"]
    assert noisy.speedup < 0.95
    assert broken(noisy, REGRESSION, before) == []


@pytest.mark.parametrize("interval, regression", [([0.04, 0.41], True), ([0.36, 1.1], False)])
def test_calls_that_stall_now_and_then_hide_no_regression(tmp_path, interval, regression):
    """The median stays, and the lower end of the interval falls: as noise to either side it explained the loss."""
    before, stalls = judged("1/1", 0.98, name="relu.cu"), judged("1/1", 0.39, name="relu.cu", seed=2)
    stalls.baselines["eager"]["interval"] = interval
    assert bool(broken(stalls, REGRESSION, run(tmp_path / "before", before))) is regression


def test_the_baseline_of_the_same_run_counts_not_the_time_alone(tmp_path):
    before = run(tmp_path / "before", result("1/1", 1.0, name="relu.cu", seed=1))
    on_a_slower_day = result("1/1", 1.2, name="relu.cu", seed=2, baseline_ms=1.2)
    assert broken(on_a_slower_day, REGRESSION, before) == []


@pytest.mark.parametrize(
    "change, why",
    [
        (lambda r: r.solution.update(name="new.cu"), "it is new"),
        (lambda r: r.device.update(name="another"), "device was cpu before and is another"),
        (lambda r: r.device.update(threads=7), "number of threads was None before and is 7"),
        (lambda r: r.workload.update(name="full"), "workload was small before and is full"),
        (lambda r: setattr(r, "precision", "fp16"), "precision was fp32 before and is fp16"),
        (lambda r: r.versions.update(torch="2.10"), "PyTorch was 2.9 before and is 2.10"),
        (lambda r: r.baselines.update(compile=r.baselines.pop("eager")), "baseline was eager before and is compile"),
        (lambda r: setattr(r, "problem_sha256", "1"), "its problem has changed"),
        (lambda r: r.workload.update(sizes={"n": 2}), "different sizes: small is n=1 before, n=2 after"),
    ],
)
def test_what_cannot_be_compared_is_said_not_failed(tmp_path, change, why):
    before = result("1/1", 1.0, name="relu.cu", seed=1)
    before.problem_sha256, before.workload["sizes"], before.versions["torch"] = "0", {"n": 1}, "2.9"
    now = copy.deepcopy(before)
    change(now)
    now.speedup /= 10
    check = check_result(now, REGRESSION, run(tmp_path / "before", before))
    assert check.broken == [] and check.unchecked == [f"no regression looked for: {why}"]


@pytest.mark.parametrize("versions", [({}, {"torch": "2.9"}), ({"torch": "2.9"}, {})])
def test_a_result_that_does_not_say_its_pytorch_is_compared(tmp_path, versions):
    slow = {"seed": 1, "name": "relu.cu"}
    before, now = (result("1/1", ms, versions=of, **slow) for ms, of in zip((1.0, 10.0), versions))
    assert broken(now, REGRESSION, run(tmp_path / "before", before))


def test_what_was_broken_before_has_nothing_to_regress_from(tmp_path):
    before = run(tmp_path / "before", result("1/1", status=Status.TIMEOUT, name="relu.cu"))
    check = check_result(result("1/1", 1.0, name="relu.cu"), REGRESSION, Run.load(before.path))
    assert check.unchecked == ["no regression looked for: it was timeout before"]
