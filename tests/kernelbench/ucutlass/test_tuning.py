"""The autotuner: a legal search space, a model that ranks it, and a search that few measurements end."""

import json
import random
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from logs import no_room, result
from ucutlass_programs import CONV80, CONV90, GEMM80, GEMM90, SM90, TYPES

from harness.sol.hardware import limits_of
from kernelbench.cli import main
from kernelbench.cli.generate import ucutlass_tune
from kernelbench.evaluator.client import Conditions, EvaluatorUnavailable, problem_file
from kernelbench.run import only_writer
from kernelbench.ucutlass import check, ir
from kernelbench.ucutlass.canonical import digest, source_text
from kernelbench.ucutlass.ir import KernelSchedule, TileScheduler
from kernelbench.ucutlass.tuning import (
    NOT_EVALUATED,
    Measured,
    NotTunable,
    Size,
    Unevaluated,
    measure,
    order_variants,
    predicted_ms,
    ranked,
    sizes_of,
    structural_variants,
    tune,
)
from kernelbench.ucutlass.tuning.measure import Evaluations
from kernelbench.ucutlass.validation import validate

ROOT = Path(__file__).parents[3]
H100, A100 = limits_of("h100-sxm"), limits_of("a100-sxm")
LARGE = Size(4096, 4096, 4096)


def predict(size=LARGE, limits=H100):
    return lambda kernel: predicted_ms(kernel, size, limits)


# --- space --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [GEMM90, GEMM80, CONV90, CONV80, f"batched_gemm(){SM90} >> bias()", f"grouped_gemm(expert_count=4){SM90}",
     f"pipeline(transpose(weight, NCL, NLC), {GEMM90})", f"{GEMM90} >> bias() >> aux_load(t) >> gelu()"],
)  # fmt: skip
def test_every_variant_is_legal_complete_and_there_once(source):
    program = check(source)
    found = structural_variants(program)
    assert len(found) > 10 and len({digest(one) for one in found}) == len(found)
    for one in found[:: max(1, len(found) // 20)]:
        assert not validate(one) and check(source_text(one)).body == one.body
        assert one.kernels[0].epilogue == program.kernels[0].epilogue
        assert one.kernels[0].dtypes == program.kernels[0].dtypes


def test_the_space_holds_the_published_configuration_and_all_schedules():
    found = [one.body for one in structural_variants(check(GEMM90))]
    assert any(one.cta_tile == ir.CtaTile(128, 256, 64) and one.cluster == ir.Cluster(2, 1, 1) for one in found)
    schedules = {(one.scheduler.kernel, one.scheduler.tile) for one in found}
    assert (KernelSchedule.TMA_COOPERATIVE, TileScheduler.STREAM_K) in schedules and len(schedules) == 4


def test_orders_of_tiles_and_stages_vary_without_tiles():
    program = check(GEMM90)
    found = order_variants(program)
    assert {one.body.tile for one in found} == {program.body.tile} and digest(program) not in map(digest, found)
    assert {one.body.scheduler.raster for one in found} == set(ir.RasterOrder)
    assert {one.body.stages for one in found} == {program.body.stages, program.body.stages - 1}


def test_what_forbids_tma_stays_without_it():
    narrow = check(f"{GEMM90}.with_alignment(A=2, B=2, C=8)")
    assert {one.body.scheduler.kernel.is_tma for one in structural_variants(narrow)} == {False}


@pytest.mark.parametrize(
    "source", [f"pipeline({GEMM90}, {GEMM90})", f"depthwise_conv1d(kernel_w=3){TYPES}.with_arch(sm_80)"]
)
def test_programs_without_choices_are_refused_with_the_reason(source):
    with pytest.raises(NotTunable, match="tune each|no tile"):
        structural_variants(check(source))


# --- model --------------------------------------------------------------------------------------------------------


def fastest(source, size, limits=H100):
    return ranked(structural_variants(check(source)), predict(size, limits))[0]


def test_the_likeliest_tile_of_a_large_product_is_the_published_one():
    ms, best = fastest(GEMM90, LARGE)
    assert {best.body.cta_tile.m, best.body.cta_tile.n} == {128, 256} and best.body.scheduler.kernel.is_cooperative
    assert 0.139 < ms < 0.236  # 137 GFLOP at the full rate, and what an untuned kernel was seen to take


@pytest.mark.parametrize("n", [4096, 8192])
def test_the_model_ranks_nine_choices_about_as_an_h100_does(n):
    """Rank correlation with the times in results/h100/ucutlass; 1 is the same order."""
    times = json.loads((ROOT / "results/h100/ucutlass/ucutlass.json").read_text())["gemm"][str(n)]["times"]
    found = [(predicted_ms(kernel, Size(n, n, n), H100), times[name]["us"]) for name, kernel in measured_kernels(times)]
    assert len(found) == 9
    predicted, measured = (sorted(range(9), key=lambda i, side=side: found[i][side]) for side in (0, 1))
    distance = sum((predicted.index(i) - measured.index(i)) ** 2 for i in range(9))
    assert 1 - 6 * distance / (9 * (81 - 1)) > 0.6
    assert all(0.7 < 1e3 * ms / us < 1.3 for ms, us in found)


def measured_kernels(times):
    """The kernels of a record of scripts/bench/ucutlass.py, with its names for them."""
    form = r"(\d+)x(\d+) cluster (\d+)x(\d+) (\w+) stages (\d+) (\w+) swizzle (\d+) (\w+)"
    for name in times:
        if match := re.fullmatch(form, name):
            m, n, along_m, along_n, kernel, stages, raster, swizzle, tile = match.groups()
            yield name, check(
                f"{GEMM90}.with_threadblockshape(m={int(m) * int(along_m)}, n={n}, k=64).with_stages({stages})"
                f".with_cluster(m={along_m}, n={along_n}, k=1).with_scheduler(tile={tile}, kernel={kernel}, "
                f"raster={raster}, max_swizzle={swizzle}) >> bias() >> gelu()"
            ).body


def test_few_tiles_of_a_deep_product_are_small_or_share_their_sums():
    _, best = fastest(GEMM90, Size(256, 256, 131072))
    small = best.body.cta_tile.m * best.body.cta_tile.n <= 64 * 64
    assert small or best.body.scheduler.tile is TileScheduler.STREAM_K
    _, before = fastest(GEMM80, Size(256, 256, 131072), A100)
    assert before.body.split_k.slices > 1


def test_predictions_grow_with_the_work_and_stay_above_the_devices_limits():
    kernel = check(GEMM90).body
    times = [predicted_ms(kernel, Size(n, n, n), H100) for n in (1024, 2048, 4096, 8192)]
    assert times == sorted(times)
    assert all(ms > 2 * n**3 / (H100.fp16 * 1e9) for ms, n in zip(times, (1024, 2048, 4096, 8192)))
    assert predicted_ms(check(f"{GEMM90} >> aux_load(t)").body, LARGE, H100) >= times[2]


def test_a_convolution_is_an_implicit_product():
    kernel = check(CONV80).body
    extents = {"N": 2, "H": 9, "W": 9, "C": 16, "K": 32, "R": 3, "S": 3, "P": 7, "Q": 7}
    assert sizes_of(kernel, extents) == Size(2 * 7 * 7, 32, 16 * 9)
    assert sizes_of(check(CONV80.replace("fprop", "dgrad")).body, extents) == Size(2 * 9 * 9, 16, 32 * 9)
    assert sizes_of(check(CONV80.replace("fprop", "wgrad")).body, extents) == Size(32, 16 * 9, 2 * 7 * 7)


# --- search -------------------------------------------------------------------------------------------------------


class Device:
    """Times that differ from the model's by up to 30 % for each variant, the same at every call, and noise."""

    def __init__(self, wrong=()):
        self.calls, self.built, self.wrong = [], set(), set(wrong)

    def true_ms(self, program):
        twist = random.Random(digest(program)).uniform(1.0, 1.3)
        return twist * predict()(program.kernels[0])

    def __call__(self, programs):
        self.calls.append(len(programs))
        self.built |= {digest(one) for one in programs}
        return [self.measured(one) for one in programs]

    def measured(self, program):
        if digest(program) in self.wrong:
            return Measured(program, None, "wrong_value", "off by one")
        return Measured(program, self.true_ms(program))


def test_a_search_builds_no_more_than_it_may_and_finds_something_faster():
    program = check(f"{GEMM90}.with_threadblockshape(m=64, n=64, k=64).with_stages(2)")
    device = Device()
    found = tune(program, predict(), device, builds=12)
    assert len(device.built) <= 12 and len(found.tried) == 12
    assert found.gain > 1.5 and found.best.ms == device.true_ms(found.best.program)
    assert found.best.ms == min(one.ms for one in found.tried)


def test_more_builds_find_a_faster_kernel():
    program = check(f"{GEMM90}.with_threadblockshape(m=64, n=64, k=64).with_stages(2)")
    few, more = (tune(program, predict(), Device(), builds).best.ms for builds in (3, 12))
    assert more < few


def test_the_best_is_measured_again_beside_the_program():
    device = Device()
    tune(check(f"{GEMM90}.with_threadblockshape(m=64, n=64, k=64).with_stages(2)"), predict(), device, builds=6)
    assert device.calls[-1] == 2


def test_what_is_only_lucky_does_not_replace_the_program():
    program = check(GEMM90)

    class Lucky(Device):
        def measured(self, one):
            first = len(self.calls) == 1 and digest(one) != digest(program)
            return Measured(one, 0.5 if first else 1.0)

    found = tune(program, predict(), Lucky(), builds=6)
    assert digest(found.best.program) == digest(program) and found.gain == 1.0


def test_variants_that_are_wrong_never_win():
    program = check(GEMM90)
    likely = [digest(one) for _, one in ranked(structural_variants(program), predict())[:3]]
    found = tune(program, predict(), Device(wrong=likely), builds=12)
    assert digest(found.best.program) not in likely


def test_where_nothing_is_right_the_search_says_so():
    program = check(GEMM90)
    every = [digest(one) for one in [program, *structural_variants(program), *order_variants(program)]]
    found = tune(program, predict(), Device(wrong=every), builds=4)
    assert found.best.ms is None and found.gain is None and found.best.status == "wrong_value"


@pytest.mark.parametrize("missing", ["program", "best", "program where it is the best"])
def test_a_last_measurement_that_is_missing_leaves_the_answer_open(missing):
    """A variant of 1.5 ms took the place of a program of 1.0 ms, and the program was told not to be right."""
    program = check(GEMM90)

    class Failing(Device):
        def measured(self, one):
            is_program, is_last = digest(one) == digest(program), len(self.calls) == 3
            if is_last and is_program == (missing != "best"):
                return Measured(one, None, NOT_EVALUATED, "the device is lost")
            is_fast = is_program == (missing == "program where it is the best")
            return Measured(one, 0.9 if is_fast else 1.0)

    with pytest.raises(Unevaluated, match="measured once more, and . could not be evaluated: the device is lost"):
        tune(program, predict(), Failing(), builds=6)


def test_a_program_that_was_not_evaluated_at_first_is_replaced_by_nothing_slower():
    program = check(GEMM90)

    class Failing(Device):
        def measured(self, one):
            if digest(one) == digest(program):
                return Measured(one, None, NOT_EVALUATED) if len(self.calls) == 1 else Measured(one, 1.0)
            return Measured(one, 1.5)

    found = tune(program, predict(), Failing(), builds=6)
    assert digest(found.best.program) == digest(program) and found.gain == 1.0


@pytest.mark.parametrize("wrong", [[], [GEMM90]])
def test_where_the_machine_fails_nothing_is_told_to_be_wrong(wrong):
    class Failing(Device):
        def measured(self, one):
            one = super().measured(one)
            return one if one.ms is None else Measured(one.program, None, NOT_EVALUATED, "the device is lost")

    with pytest.raises(Unevaluated, match="none of 3 variants was right, and . could not be evaluated: the device"):
        tune(check(GEMM90), predict(), Failing([digest(check(one)) for one in wrong]), builds=4)


def test_a_search_of_one_build_is_none():
    with pytest.raises(ValueError, match="at least 2 builds"):
        tune(check(GEMM90), predict(), Device(), builds=1)


# --- command ------------------------------------------------------------------------------------------------------


def kb_tune(tmp_path, source, *arguments):
    path = tmp_path / "program.dsl"
    path.write_text(source)
    return CliRunner().invoke(main, ["ucutlass", "tune", str(path), "--precision", "fp16", *arguments])


def test_tune_lists_variants_without_a_gpu(tmp_path):
    done = kb_tune(tmp_path, f"# kb: problem=2/76\n{GEMM90} >> bias() >> relu()", "--list", "--json")
    data = json.loads(done.output)
    assert done.exit_code == 0 and len(data["variants"]) > 100 and data["size"]["k"] == 8192
    times = [one["predicted_ms"] for one in data["variants"]]
    assert times == sorted(times)
    assert "legal variants of M=1024" in kb_tune(tmp_path, GEMM90, "--list", "--problem", "2/76").output


@pytest.mark.parametrize(
    ("source", "arguments", "status", "message"),
    [
        (GEMM90, ["--list"], 2, "name the problem"),
        (f"pipeline({GEMM90})", ["--list", "--problem", "2/76", "--gpu", "h900"], 2, "h900"),
        (GEMM90, ["--list", "--problem", "1/50"], 1, "bind-"),
        (GEMM90 + ".with_stages(1)", ["--list", "--problem", "2/76"], 1, "stages-least"),
        (GEMM90, ["--builds", "1"], 2, "--builds"),
        (GEMM90, ["--problem", "2/76", "--device", "cpu"], 3, "no GPU to measure on"),
    ],
)
def test_tune_says_what_it_lacks(tmp_path, source, arguments, status, message):
    done = kb_tune(tmp_path, source, *arguments)
    assert done.exit_code == status and message in done.output, done.output


@pytest.mark.parametrize("arguments", [[], ["--list"]])
def test_a_device_that_is_not_there_is_told_as_such(tmp_path, monkeypatch, arguments):
    """An AssertionError of PyTorch's ended in a traceback."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    done = kb_tune(tmp_path, f"{GEMM90} >> bias() >> relu()", "--problem", "2/76", "--device", "cuda:9", *arguments)
    assert done.exit_code == 3 and "no device cuda:9" in done.output and "please report" not in done.output, done.output


@pytest.fixture
def evaluated(monkeypatch):
    """Let variants have a result without a GPU, until ``after`` of them; then comes what ends a search."""
    monkeypatch.setattr(ucutlass_tune, "_limits", lambda *_: limits_of("h100-sxm"))

    def evaluated(after, end):
        def evaluate_all(jobs, conditions, told):
            for place in range(min(after, len(jobs))):
                told(place, result("2/76", 1.0 + place, name=jobs[place].path.name))
            if after < len(jobs):
                raise end

        monkeypatch.setattr(measure, "evaluate_all", evaluate_all)

    return evaluated


def test_what_was_measured_is_kept_where_a_search_does_not_come_to_its_end(tmp_path, evaluated):
    """Records were written at the end: of 200 builds of 45 s each nothing was left."""
    out = tmp_path / "tuned"
    evaluated(after=3, end=RuntimeError("the machine fails"))
    kb_tune(tmp_path, f"{GEMM90} >> bias() >> relu()", "--problem", "2/76", "-o", str(out))
    records = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert len(records) == 3 and all((out / "variants" / one["solution"]["name"]).exists() for one in records)


def test_a_search_keeps_every_record_and_another_does_not_touch_them(tmp_path, evaluated):
    """The second search emptied the first one's records before it had measured anything."""
    evaluated(after=99, end=None)
    out, source = tmp_path / "tuned", f"{GEMM90} >> bias() >> relu()"
    done = kb_tune(tmp_path, source, "--problem", "2/76", "--builds", "3", "-o", str(out))
    assert done.exit_code == 0, done.output
    tried = json.loads((out / "tuning.json").read_text())["tried"]
    assert 3 < len((out / "results.jsonl").read_text().splitlines()) <= len(tried) + 2
    kept = {path: path.read_text() for path in out.iterdir() if path.is_file()}
    for left in ("best.dsl", "tuning.json", "results.jsonl"):
        again = kb_tune(tmp_path, source, "--problem", "2/76", "--builds", "3", "-o", str(out))
        assert again.exit_code == 2 and f"{left} is there already, of another search" in again.output
        assert {path: path.read_text() for path in kept} == kept
        kept.pop(out / left)
        (out / left).unlink()
    assert kb_tune(tmp_path, source, "--problem", "2/76", "--builds", "3", "-o", str(out)).exit_code == 0


def test_of_two_searches_at_once_one_has_the_folder(tmp_path, evaluated):
    evaluated(after=99, end=None)
    out, source = tmp_path / "tuned", f"{GEMM90} >> bias() >> relu()"
    out.mkdir()
    with only_writer(out / "results.jsonl"):
        done = kb_tune(tmp_path, source, "--problem", "2/76", "--builds", "3", "-o", str(out))
    assert done.exit_code == 2 and "another kb is writing into" in done.output and not (out / "best.dsl").exists()
    assert kb_tune(tmp_path, source, "--problem", "2/76", "--builds", "3", "-o", str(out)).exit_code == 0


def test_a_search_without_an_evaluator_is_no_verdict_and_writes_no_program(tmp_path, evaluated, monkeypatch):
    """It was told as "no variant was right", with the status of a program that breaks a rule."""
    evaluated(after=0, end=None)

    def evaluate_all(jobs, conditions, told):
        for place in range(len(jobs)):
            told(place, EvaluatorUnavailable("the evaluator ended 3 times without an answer"))

    monkeypatch.setattr(measure, "evaluate_all", evaluate_all)
    out = tmp_path / "tuned"
    done = kb_tune(tmp_path, f"{GEMM90} >> bias() >> relu()", "--problem", "2/76", "-o", str(out))
    assert done.exit_code == 3 and "could not be evaluated: the evaluator ended 3 times" in done.output, done.output
    assert not (out / "best.dsl").exists() and not (out / "tuning.json").exists()


def test_a_full_disk_is_told_as_such(tmp_path, evaluated, monkeypatch):
    """It ended with a traceback."""
    monkeypatch.setattr("harness.faults._WAIT_S", 0)
    evaluated(after=3, end=None)
    with monkeypatch.context() as patch:
        no_room(patch)
        done = kb_tune(tmp_path, f"{GEMM90} >> bias() >> relu()", "--problem", "2/76", "-o", str(tmp_path / "tuned"))
    assert done.exit_code == 3 and "results.jsonl: No space left on device" in done.output
    assert "please report" not in done.output and "--resume" not in done.output


@pytest.mark.parametrize(
    "out, status, message", [("x" * 300, 2, "...: File name too long"), ("/proc/none", 3, "/proc/none: No such file")]
)
def test_a_folder_that_no_file_system_takes_is_told_as_such(tmp_path, evaluated, out, status, message):
    """A folder that could not be made ended in a traceback."""
    evaluated(after=0, end=None)
    done = kb_tune(tmp_path, f"{GEMM90} >> bias() >> relu()", "--problem", "2/76", "-o", str(tmp_path / out))
    assert done.exit_code == status and message in done.output and "please report" not in done.output, done.output


@pytest.mark.gpu
def test_tune_measures_on_a_gpu_and_writes_the_best_program(tmp_path):
    out = tmp_path / "tuned"
    source = f"{GEMM90} >> bias() >> relu()"
    done = kb_tune(tmp_path, source, "--problem", "2/76", "--workload", "small", "--builds", "3",
                   "-o", str(out))  # fmt: skip
    assert done.exit_code == 0, done.output
    assert check((out / "best.dsl").read_text())
    data = json.loads((out / "tuning.json").read_text())
    assert data["best"]["ms"] <= data["start"]["ms"] * 1.005 and len(data["tried"]) == 3


def test_variants_are_evaluated_by_the_judges_and_a_missing_gpu_is_said(tmp_path):
    heard = []
    problem = problem_file("2/76", Conditions())
    measure = Evaluations(problem, Conditions(device="cpu", workload="small"), tmp_path, predict(), heard.append)
    program = check(f"{GEMM90} >> bias() >> relu() bind(B=gemm.weight)")
    (found,) = measure([program])
    assert found.ms is None and found.status == "not evaluated" and "GPU" in found.message and heard == [found]
    (path,) = tmp_path.glob("*.dsl")
    assert path.read_text().startswith("# kb: problem=2/76\n") and check(path.read_text()) == program
