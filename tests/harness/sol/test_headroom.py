"""What a result record says about the speed of light."""

import pytest
import torch

from harness.sol.bounds import analyse
from harness.sol.clock import choose, parse
from harness.sol.hardware import limits_of, limits_of_device
from harness.sol.headroom import compare, headroom
from harness.sol.report import markdown, to_json

H100 = limits_of("h100-sxm")


@pytest.fixture
def matmul(problem):
    return analyse(problem("1/1").workload("full"))


def test_on_a_device_without_limits_the_record_says_so(workload):
    found = headroom(workload("return x + 1", "torch.rand(9)"), torch.float32, torch.device("cpu"), 1.0, {})
    assert list(found) == ["unavailable"] and "no limits are known" in found["unavailable"]


def test_a_reference_that_cannot_be_traced_has_no_bound(workload, monkeypatch):
    monkeypatch.setattr("harness.sol.headroom.limits_at_hand", lambda device: H100)
    needs_data = workload("return x[: int(x.sum())]", "torch.rand(9)")
    found = headroom(needs_data, torch.float32, torch.device("cpu"), 1.0, {})
    assert "cannot be traced" in found["unavailable"]


def test_each_size_of_a_workload_has_its_own_bounds(problem, monkeypatch):
    """Held-out sizes share the name: honest kernels were below the floor of the published size."""
    monkeypatch.setattr("harness.sol.headroom.limits_at_hand", lambda device: H100)
    published = problem("1/1").workload("full")
    other = published.with_sizes({"n": 2 * published.sizes["n"]})
    floors = [headroom(one, torch.float32, torch.device("cpu"), 1.0, {})["t_floor_ms"] for one in (published, other)]
    assert floors[1] > 6 * floors[0]


def test_a_measured_time_beside_the_bounds(matmul):
    conditions = {"sm_clock_mhz": {"median": 1500}, "memory_clock_mhz": {"median": 2619}}
    found = compare(matmul, H100, 2.0, choose(H100, conditions))
    assert (found["sm_mhz"], found["memory_mhz"], found["clock"]) == (1500, 2619, "observed")
    assert found["t_sol_ms"] == pytest.approx(0.3667, abs=1e-4)
    assert found["t_sol_fp16_ms"] == pytest.approx(0.1834, abs=1e-4)
    assert found["t_floor_ms"] < found["t_sol_fp16_ms"] and found["bottleneck"] == "compute"
    assert found["g"] == pytest.approx(2.0 / found["t_sol_ms"])
    assert found["percent_of_sol"] == pytest.approx(100 / found["g"])
    assert found["compute_share"] == pytest.approx(found["percent_of_sol"] / 100)
    assert found["bandwidth_share"] == pytest.approx(201326592 / 2e-3 / 3350e9)


def test_without_observed_clocks_the_rated_ones_count_and_the_record_says_so(matmul):
    found = compare(matmul, H100, 2.0, choose(H100, {"clocks": "not observed"}))
    assert found["t_sol_ms"] == pytest.approx(0.3667 * 1500 / 1980, abs=1e-4)
    assert (found["sm_mhz"], found["memory_mhz"], found["clock"]) == (1980, 2619, "rated")


def test_a_clock_that_is_given_comes_before_the_one_observed(problem, monkeypatch):
    monkeypatch.setattr("harness.sol.headroom.limits_at_hand", lambda device: H100)
    conditions = {"sm_clock_mhz": {"median": 1755}, "memory_clock_mhz": {"median": 2619}}
    arguments = problem("1/1").workload("full"), torch.float32, torch.device("cpu"), 2.0, conditions
    assert headroom(*arguments)["sm_mhz"] == 1755
    found = headroom(*arguments, clock_mhz=parse("mucutlass"))
    assert found["t_sol_ms"] == pytest.approx(0.3667, abs=1e-4) and found["clock"] == "given"
    assert "no SM clock of 2500 MHz" in headroom(*arguments, clock_mhz=2500.0)["unavailable"]


@pytest.mark.parametrize("text", ["fast", "0", "-5", "nan", "inf"])
def test_what_is_no_clock_is_an_error_that_names_the_presets(text):
    with pytest.raises(ValueError, match=f"mucutlass, got {text}"):
        parse(text)


def test_limits_follow_the_record_of_a_device():
    """A record and a prompt about the same device have the same limits: half of the SMs, and a slower memory."""
    described = {"type": "cuda", "name": "NVIDIA H100 80GB HBM3", "multiprocessors": 66, "l2_bytes": 25 << 20}
    half = limits_of_device(described | {"max_mhz": 1755, "memory_mhz": 1593, "bus_bits": 5120})
    assert (half.tf32, half.max_mhz, half.memory_mhz) == (pytest.approx(494.7 / 2), 1755, 1593)
    assert limits_of_device(described).memory_mhz == 2619  # a record of a time that did not keep clocks


@pytest.mark.gpu
def test_on_a_gpu_a_result_has_its_headroom(judged, problem):
    result = judged(problem("1/19"), "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
                    "        return x.clamp(min=0)\n", device="cuda", track="open")  # fmt: skip
    assert result.correct, result.message
    assert "unavailable" in result.sol or 0 < result.sol["percent_of_sol"] < 110


class TestReport:
    def test_json_has_the_fields_of_the_format(self, matmul):
        data = to_json(matmul, H100, choose(H100, given_mhz=1500))
        assert data["problem_id"] == "1/1" and data["sm_clock_mhz"] == 1500
        assert data["total_flops"] == 137438953472 and data["total_bytes"] == 201326592
        assert round(data["theoretical_runtime_ms"], 3) == 0.367 and data["peak_type"] == "TF32 TC (dense)"
        assert round(data["theoretical_runtime_ms_fp16"], 4) == 0.1834
        assert round(data["peak_tflops_effective"], 2) == 374.77
        assert round(data["fp16_peak_tflops_effective"], 2) == 749.55
        (operator,) = data["operators"]
        assert operator["name"] == "mm" and operator["flops"] == data["total_flops"]
        assert operator["inputs"] == [[4096, 4096], [4096, 4096]] and operator["dtype"] == "float32"

    def test_markdown_has_the_sections_and_the_figures(self, matmul):
        text = markdown(matmul, H100, choose(H100, given_mhz=1500))
        for heading in ("Problem characterisation", "Hardware limits", "Minimum time", "Roofline", "Summary",
                        "FP16 augmentation", "Integrity floor"):  # fmt: skip
            assert f". {heading}" in text
        for figure in ("1.374e+11", "2.013e+08", "682.7", "374.77", "749.55", "0.3667", "0.1834", "0.0601", "111.9"):
            assert figure in text
        assert "**0.367 ms**" in text and "Strassen" in text

    def test_what_explains_the_traffic_is_in_both(self, workload):
        init = 'self.register_buffer("mask", torch.tril(torch.ones(8, 8))); self.w = nn.Parameter(torch.rand(9))'
        body = "y = torch.special.bessel_j0(x)\n        return y.masked_fill(self.mask == 0, 0.0)"
        analysis = analyse(workload(body, "torch.rand(8, 8)", init))
        text, data = markdown(analysis, limits_of("l4")), to_json(analysis, limits_of("l4"))
        for holder in (text, str(data)):
            assert "not read: w, mask" in holder and "special_bessel_j0" in holder

    def test_a_problem_that_moves_nothing_has_a_report_too(self, workload):
        analysis = analyse(workload("return x", "torch.rand(9)"))
        analysis.workload.problem.module.__doc__ = " "  # an IndexError before
        text = markdown(analysis, limits_of("t4"))
        assert "no intensity" in text and f"\n\n{analysis.workload.problem.name}\n\nWorkload" in text
        assert to_json(analysis, limits_of("t4"))["arithmetic_intensity"] is None
