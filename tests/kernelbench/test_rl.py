"""The reward: its shape, its labels, batches, and many processes at once."""

import math
import multiprocessing
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import pytest
from logs import result

import kernelbench
from harness.problem.module import ProblemError, ProblemId
from harness.result import Status
from harness.solution import languages
from harness.solution.discover import read_solution
from kernelbench import EvaluationError
from kernelbench.evaluator.bench import _Cluster, _Host
from kernelbench.evaluator.call import _choice
from kernelbench.rl import MAX_SOURCE, shaped

pytestmark = pytest.mark.usefixtures("warm_evaluator")

GOOD = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x.clamp(min=0)\n"
WRONG = GOOD.replace("clamp(min=0)", "neg()")
CPP = (
    "#include <cstddef>\n"
    'extern "C" void solution(const float* x, float* y, size_t b, size_t d) {\n'
    "    for (size_t i = 0; i < b * d; i++) y[i] = x[i] > 0 ? x[i] : 0;\n}\n"
)
CALL = "import kernelbench; print(kernelbench.reward('1/19', {source!r}, device='cpu').label)"


@pytest.fixture
def relu(tmp_path):
    path = tmp_path / "relu.py"
    path.write_text(GOOD)
    return path


def reward(source, **conditions):
    return kernelbench.reward("1/19", source, **{"device": "cpu", "timeout_s": 60, **conditions})


def label(source):
    return reward(source).label


def timed(verdict, interval, ms=0.5):
    """A correct result with this verdict on a speedup of about 1 / ms."""
    found = result("1/1", ms)
    found.baselines["eager"] |= {"verdict": verdict, "interval": list(interval)}
    return found


def test_a_correct_candidate_is_worth_its_speedup_and_a_constant():
    found = shaped(result("1/1", 0.5, seed=3))
    assert found.value == pytest.approx(2.3, rel=0.02) and found.label == "ok" and found.verdict == "faster"
    assert found.value == pytest.approx(0.3 + found.settled_speedup)
    assert found.interval.low < found.settled_speedup < found.interval.high
    # one per cent of noise in each of two series of 51: a median's share is about 1.25 / sqrt(51) of it
    assert found.variance == pytest.approx(2 * (2 * 0.01 * 1.25) ** 2 / 51, rel=1)


def test_a_tie_is_worth_a_speedup_of_one_whatever_the_clocks_said():
    found = shaped(timed("tie", (0.96, 1.07), ms=0.98))
    assert (found.value, found.verdict, found.settled_speedup) == (1.3, "tie", 1)
    assert found.variance == pytest.approx((math.log(1.07 / 0.96) / (2 * 1.96)) ** 2, rel=1e-3)
    assert found.interval == (0.96, 1.07)


def test_an_unstable_candidate_is_worth_its_correctness_alone():
    found = shaped(timed("unstable", (0.5, 8)))
    assert (found.value, found.variance, found.label, found.verdict) == (0.3, 0, "ok", "unstable")
    assert found.settled_speedup is None and found.interval == (0.5, 8)


def test_so_is_a_correct_one_whose_baseline_could_not_be_timed():
    untimed = result("1/1")
    untimed.baselines = {"compile": {"error": "InductorError: no g++"}}
    found = shaped(untimed)
    assert (found.value, found.variance, found.label, found.verdict) == (0.3, 0, "ok", None)
    assert found.settled_speedup is None and found.interval is None


def test_the_bound_on_the_speedup():
    found = shaped(result("1/1", 0.01))
    assert found.value == 10.3 and found.variance == 0
    assert shaped(result("1/1", 0.01), max_speedup=2).value == 2.3


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_a_failure_is_worth_nothing_and_has_its_label(status):
    found = shaped(result("1/1", 0.1, status=status, message="why"))
    assert (found.value, found.variance, found.label, found.message) == (0, 0, status.value, "why")
    assert found.verdict is None and found.settled_speedup is None


def test_an_excluded_band_is_worth_nothing_and_says_which_it_is():
    library = result("1/1", 0.5)  # on a CPU, and its source builds nothing
    assert shaped(library).band == "library_only" and shaped(library).value > 2
    found = shaped(library, exclude=("library_only",))
    assert (found.value, found.variance, found.label, found.band) == (0.0, 0.0, "ok", "library_only")
    assert shaped(library, exclude=("sol_ceiling",)).value > 2


@pytest.mark.slow
def test_a_source_that_only_mentions_extensions_is_of_the_library_too():
    found = reward(GOOD + "\ndef unused():\n    return torch.utils.cpp_extension\n", exclude=["library_only"])
    assert (found.value, found.label, found.band) == (0.0, "ok", "library_only")


def test_a_band_that_there_is_not_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="exclude names no band: 'cheating'; use no_issues"):
        reward(GOOD, exclude=["cheating"])


@pytest.mark.slow
def test_sources_of_every_kind_are_evaluated():
    right = reward(CPP, kind="cpp")
    assert right.label == "ok" and right.value >= 0.3 and right.variance >= 0
    assert right.verdict in ("faster", "slower", "tie", "unstable")
    broken = reward(CPP.replace("void", "nonsense"), kind="cpp")
    assert broken.label == "build_error" and broken.value == 0 and "nonsense" in broken.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "why"),
    [
        (None, "must be text (str), got NoneType"),
        (GOOD.encode(), "must be text (str), got bytes"),
        (GOOD + "# \ud800\n", "lone surrogate '\\ud800' in line 4"),
        ("#" * 100_000_000, "has 100,000,000 characters; the most is 1,048,576"),
        ("\0", "null bytes"),
        ("", "ModelNew"),
    ],
    ids=["None", "bytes", "surrogate", "100 MB", "null", "empty"],
)
def test_what_is_no_program_is_a_label_too(source, why):
    found = reward(source)
    assert found.label in ("build_error", "load_error") and found.value == 0 and why in found.message
    assert found.result.device["type"] == "cpu"  # a whole record


def test_the_longest_source_is_evaluated():
    source = WRONG + "#"
    assert label(source + "\U0001f600" * (MAX_SOURCE - len(source))) == "wrong_value"


@pytest.mark.parametrize("settings", ["device=cuda", "device=quantum", "sample=x", "problem=9/99"])
def test_a_comment_does_not_decide_what_is_evaluated(settings):
    """On files it is their owner's; here a policy would write it, and be spared by it."""
    assert label(f"# kb: {settings}\n{WRONG}") == "wrong_value"


@pytest.mark.slow
def test_a_batch_keeps_its_order():
    batch = [
        ("1/19", GOOD),
        {"problem": "1/19", "source": "this is not C++", "kind": "cpp"},
        ("1/23", GOOD),
        {"problem": "1/19", "source": None},
        ["1/19", "class ModelNew: nonsense("],
    ]
    found = kernelbench.rewards(batch, device="cpu", timeout_s=60)
    assert [one.label for one in found] == ["ok", "build_error", "wrong_value", "build_error", "build_error"]
    assert [one.result.problem for one in found] == ["1/19", "1/19", "1/23", "1/19", "1/19"]
    assert kernelbench.rewards([]) == []


@pytest.mark.slow
def test_a_fault_of_the_machine_in_one_of_a_batch_does_not_lose_the_others(tmp_path):
    folder = tmp_path / "level1"
    folder.mkdir()
    (folder / "001_own.py").write_text(
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): raise OSError('no such table')\n"
        "def get_inputs(): return [torch.rand(64)]\ndef get_init_inputs(): return []\n"
    )
    faulty = kernelbench.load_problem("1/1", tmp_path)
    first, second, third = kernelbench.rewards(
        [("1/19", WRONG), (faulty, GOOD), ("1/19", "nonsense(")], device="cpu", timeout_s=60
    )
    assert (first.label, third.label) == ("wrong_value", "build_error")
    assert isinstance(second, EvaluationError) and "no such table" in str(second)
    with pytest.raises(EvaluationError, match="no such table"):
        kernelbench.reward(faulty, GOOD, device="cpu")


def test_mistakes_in_a_batch_are_found_before_anything_is_evaluated():
    for batch, why in {
        (("1/19", GOOD), ("1/999", GOOD)): "candidate 1: no problem matches '1/999'",
        ("1/19",): "candidate 0: a candidate is",
        ((None, GOOD),): "candidate 0: a problem is its id",
    }.items():
        with pytest.raises(ValueError, match=why):
            kernelbench.rewards(batch, device="cpu")
    with pytest.raises(ValueError, match="candidate 0: needs the keys problem, source"):
        kernelbench.rewards([{"problem": "1/19", "code": GOOD}], device="cpu")
    with pytest.raises(ValueError, match="candidate 0: 'so' is no kind"):
        kernelbench.rewards([{"problem": "1/19", "source": GOOD, "kind": "so"}], device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_a_parent_that_has_evaluated_itself(method, relu):
    """The parent has an evaluator already; its children must not use it."""
    kernelbench.evaluate("1/19", relu, device="cpu")
    assert label(GOOD) == "ok"
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(label, [GOOD, WRONG], chunksize=1).get(timeout=120)
    assert found == ["ok", "wrong_value"]
    assert label(GOOD) == "ok"  # and the parent's still works


@pytest.mark.slow
def test_independent_processes_at_once():
    started = [
        subprocess.Popen([sys.executable, "-c", CALL.format(source=source)], stdout=subprocess.PIPE, text=True)
        for source in (GOOD, "class ModelNew: nonsense(")
    ]
    assert [process.communicate(timeout=120)[0].strip() for process in started] == ["ok", "build_error"]


@pytest.mark.slow
def test_mistakes_of_the_caller_are_exceptions():
    with pytest.raises(ValueError, match="no kind"):
        reward(GOOD, kind="so")
    for problem in ("1/999", "level1", "relu", None, 19):
        with pytest.raises(ValueError, match="problem"):
            kernelbench.reward(problem, GOOD, device="cpu")
    with pytest.raises(ValueError, match="precision must be one of fp32, fp16, bf16, got 'fp8'"):
        reward(GOOD, precision="fp8")
    with pytest.raises(ProblemError, match="no workload 'huge'"):
        reward(GOOD, workload="huge")
    with pytest.raises(TypeError, match="cores"):
        reward(GOOD, cores=3)
    with pytest.raises(EvaluationError, match="'tpu' is no device"):
        reward(GOOD, device="tpu")
    with pytest.raises(EvaluationError, match="needs a GPU"):
        reward("", kind="cu")  # the kind is the caller's, what Python imports is the candidate's
    assert label("import triton.language as tl\n" + GOOD) == "build_error"
    assert label(WRONG) == "wrong_value"  # the evaluator is not lost with it


@pytest.mark.parametrize("opened", [_Host, _Cluster])
def test_a_language_that_is_not_installed_is_the_choice_of_a_sources_author(tmp_path, monkeypatch, opened):
    """A line that includes its header, or imports it, withdrew a wrong candidate: it was not evaluated."""
    monkeypatch.setattr(languages.Language, "installed", lambda self: "")
    known = {name: languages.missing(name) for name in languages.languages()}  # as a node of a cluster says
    path = tmp_path / "19.cpp"
    path.write_text("#if 0\n#include <tvm/ffi/x.h>\n#endif\n" + CPP)
    missing = partial(opened.missing, SimpleNamespace(line=SimpleNamespace(missing=known)))
    bench = SimpleNamespace(device_type="cpu", missing=missing)
    for job, choice in (({"path": None, "kind": "cpp"}, "apache-tvm-ffi"), ({"path": str(path), "kind": "cpp"}, "")):
        found = _choice(job, read_solution(path, problem=ProblemId(1, 19)), bench)
        assert choice in found and bool(found) == bool(choice)


def test_the_functions_are_not_hidden_by_modules_of_their_names():
    code = "import sys, kernelbench, kernelbench.api, kernelbench.rl\nassert 'torch' not in sys.modules\n"
    code += "assert all(callable(getattr(kernelbench, name)) for name in kernelbench.__all__)"
    subprocess.run([sys.executable, "-c", code], check=True)
