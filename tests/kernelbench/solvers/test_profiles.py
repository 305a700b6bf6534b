"""A profile from what a judge recorded, and as text for a model."""

import json

import pytest

from harness.result import Result, Status
from kernelbench.solvers.backend.interface import Profile
from kernelbench.solvers.backend.profiles import merged, profile_of
from kernelbench.solvers.prompting.profile_text import markdown

RESULT = Result(
    "1/1", "own", {"name": "full"}, {"name": "1.py", "sample": 1, "sha256": "a"}, Status.OK,
    sol={"compute_share": 0.25, "bandwidth_share": 0.5}, device={"compute_capability": "9.0"},
)  # fmt: skip
GEMM = {"name": "gemm", "launches": 1, "ms": 3.0, "registers": 64, "shared_bytes": 0, "grid": [8], "block": [16, 16, 1]}
COPY = {"name": "memcpy", "launches": 1, "ms": 1.0, "registers": 0, "shared_bytes": 0, "grid": [], "block": []}
NCU = (
    '"ID","Kernel Name","gpu__time_duration.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed",'
    '"dram__throughput.avg.pct_of_peak_sustained_elapsed","launch__block_size"\n'
    '"","","ns","%","%",""\n"0","gemm","3,000,000","80","20","256"\n"1","add","1,000,000","10","90","128"\n'
)


def test_cupti_gives_launch_parameters_and_the_formula_the_occupancy():
    profile = profile_of({"tool": "cupti", "kernels": [GEMM, COPY], "note": "no counters"}, RESULT)
    assert (profile.registers, profile.block_size, profile.occupancy_percent) == (64, 256, 50.0)
    assert profile.sm_percent is None and (profile.compute_percent, profile.bandwidth_percent) == (25.0, 50.0)
    assert Profile.from_json(profile.to_json() | {"of_later": 1}) == profile


def test_counters_of_ncu_are_merged_by_time():
    """(80 * 3 ms + 10 * 1 ms) / 4 ms = 62.5 and (20 * 3 + 90 * 1) / 4 = 37.5."""
    profile = profile_of({"tool": "cupti", "kernels": [GEMM], "ncu_output": NCU}, RESULT)
    assert profile.tool == "ncu" and [kernel["name"] for kernel in profile.kernels] == ["gemm", "add"]
    assert (profile.sm_percent, profile.dram_percent, profile.l2_percent) == (62.5, 37.5, None)
    assert profile.block_size == pytest.approx((256 * 3 + 128) / 4) and profile.registers == 64


def test_where_ncu_says_no_what_cupti_saw_stands_with_the_reason():
    refused = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission"
    profile = profile_of({"tool": "cupti", "kernels": [GEMM], "ncu_output": refused}, RESULT)
    assert profile.tool == "cupti" and profile.registers == 64
    assert profile.note.startswith("no counters: the driver keeps performance counters to administrators")


HEAD = NCU.partition("\n")[0] + "\n"


@pytest.mark.parametrize(
    "output",
    [
        '"ID","Kernel Name","Metric Name"\n"0","k","gpu__time_duration.sum"\n',
        HEAD + '"0","k","5","1"\n"1","k","-5","1"\n',
        HEAD + '"0","k","nan","inf"\n',
        HEAD + '"0","k","1e308","1e308"\n"1","k","1e308","1e308"\n',
        HEAD + '"0"\n',
        HEAD + '"0","' + "x" * 140_000 + '","5","1"\n',
        HEAD + '"0","k\0","5","1"\n',
        '"ID" "Kernel Name"\n"0","k"\n',
        HEAD + NCU,
        "x" + HEAD + NCU,
        "| " + NCU,
    ],
)
def test_a_damaged_table_is_no_fault_and_has_no_figure_that_is_none(output):
    profile = profile_of({"tool": "cupti", "kernels": [GEMM], "ncu_output": output}, RESULT)
    assert profile.tool == "ncu" or profile.note.startswith("no counters: ")
    json.dumps(profile.to_json(), allow_nan=False)


def test_of_two_tables_neither_is_read():
    profile = profile_of({"tool": "cupti", "kernels": [GEMM], "ncu_output": HEAD + NCU}, RESULT)
    assert profile.tool == "cupti" and "two tables" in profile.note


def test_without_kernels_nothing_is_merged():
    assert set(merged([]).values()) == {None}


def test_a_profile_as_text_names_what_is_known_only():
    text = markdown(profile_of({"tool": "cupti", "kernels": [GEMM], "note": "no counters"}, RESULT))
    assert "Profile (cupti; no counters):" in text and "- occupancy, %: 50" in text and "| gemm" in text
    assert "DRAM throughput" not in text
    facts = Profile("cpu", facts={"cores_used": 1.5, "cpu_s": None})
    assert markdown(facts) == "Profile (cpu):\n- cores used: 1.5"
