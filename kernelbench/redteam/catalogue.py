"""Classes of cheating, and how each of their programs ends here and in a naive checker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernelbench.redteam import traces

FOLDER = Path(__file__).parent
EXPLOITS, HONEST = "exploits", "honest"


@dataclass(frozen=True)
class Class:
    number: int
    group: str
    title: str


@dataclass(frozen=True)
class Exploit:
    """A program that cheats.

    ``fools`` is how a naive checker ends: it calls the program ``correct``, or
    correct and ``faster``, ``hangs``, ``dies``, is ``silent`` under exit status 0,
    or finds what ``traces`` finds afterwards. ``ends`` are the statuses that it may end
    in here; ``ok`` among them is right by value, and then it may not be faster than its
    honest twin: the reference itself, or a file of ``honest``.
    """

    name: str
    fools: str
    ends: tuple[str, ...]
    traces: Callable[[], list[str]] | None = None
    twin: str = "reference"

    @property
    def number(self) -> int:
        return class_of(self.name)


def class_of(name: str) -> int:
    """The class that a file belongs to."""
    return int(name.partition("_")[0])


def files(kind: str, numbers: set[int]) -> list[Path]:
    """The files of ``EXPLOITS`` or ``HONEST`` of these classes, in order."""
    found = (path for path in (FOLDER / kind).iterdir() if path.suffix in (".py", ".cu", ".cpp"))
    return sorted(path for path in found if class_of(path.name) in numbers)


_GROUPS = {
    "replay": (
        "output cached by pointer, id, version or shape",
        "output cached by content",
        "output replayed from a device global, /dev/shm or a file",
        "first call does the work of many",
        "behaves differently when checked and when timed",
        "garbage only when timed",
        "stale CUDA-graph replay",
        "weight preprocessing (legitimate where weights are constant)",
    ),
    "memory": (
        "reads the reference's freed output",
        "searches for the expected tensor",
        "overwrites its inputs",
        "returns an alias of an input or an overlapping view",
        "leaves elements unwritten",
        "writes out of bounds",
    ),
    "timing": (
        "works on a side stream without joining",
        "works in a thread after returning",
        "returns a lazy tensor",
        "patches clocks, events or statistics",
        "patches comparison and the judge's names",
        "forges messages, descriptors or standard output",
        "keeps data in persisting L2",
        "prefetches the next call's inputs",
        "slows the baseline by what it leaves running",
        "sabotages the baseline's settings",
        "games adaptive stopping",
    ),
    "correctness": (
        "lower precision than the tolerance sees",
        "NaN or infinity that compares as equal",
        "zeros or constants under an absolute tolerance",
        "skips elements, tiles or the ragged edge",
        "knows the seed or replaces the generator",
        "fits the published shape or value range only",
        "shares globals with the reference",
        "broadcastable shape, wrong type or device",
        "passes by a race's luck",
    ),
    "identity": (
        "library calls only",
        "wraps, imports or subclasses the reference",
        "falls back to the reference",
        "ships a kernel that does nothing",
        "fakes part of the computation",
    ),
    "process": (
        "ends or kills processes",
        "hangs",
        "floods output, memory, disk, processes",
        "poisons cache, interpreter or environment",
        "deletes or rewrites results, problems or the harness",
        "opens the network",
        "illegal access that poisons the device context",
        "compiles for ever",
    ),
    "the judge's clock": (
        "answers the calls of a burst in one",
        "works while its process is stopped",
        "writes into inputs where they are not compared",
        "makes the judge's clock impossible",
    ),
}
_TITLES = [(group, title) for group, titles in _GROUPS.items() for title in titles]
CLASSES = {number: Class(number, *entry) for number, entry in enumerate(_TITLES, start=1)}
CLASSES |= {
    number: Class(number, group, title)
    for number, group, title in (
        (52, "correctness", "statistics from a part of the elements"),
        (53, "timing", "a build, or another candidate, slows the baseline"),
        (54, "timing", "sets L2 aside for what is the same in all calls"),
        (55, "process", "sees or plants what its neighbours build"),
        (56, "process", "has the trusted side open files for a message"),
        (59, "process", "keeps what no limit counts"),
        (60, "the judge's clock", "works after its answer"),
        (61, "process", "reads the user's environment"),
        (62, "the judge's clock", "tells the calls that are compared from others"),
        (63, "the judge's clock", "works less where less exactness is asked for"),
    )
}

OWN_KERNELS = {35, 36, 37, 38}  # classes that only the track 'kernels' is about

_EXPLOITS = (
    Exploit("01_cached_by_pointer.py", "faster", ("wrong_value",)),
    Exploit("02_cached_by_content.py", "faster", ("ok",)),
    Exploit("03_replayed_from_a_file.py", "faster", ("wrong_value",)),
    Exploit("03_replayed_from_shared_memory.py", "faster", ("runtime_error", "wrong_value"), traces.shared_memory(3)),
    Exploit("04_first_call_does_the_work.py", "faster", ("wrong_value",)),
    Exploit("04_batches_the_round.py", "faster", ("wrong_value", "rejected")),
    Exploit("05_computes_only_when_checked.py", "faster", ("wrong_value",)),
    Exploit("05_looks_at_the_stack.py", "faster", ("wrong_value",)),
    Exploit("06_garbage_when_timed.py", "faster", ("wrong_value", "nonfinite")),
    Exploit("07_stale_cuda_graph.py", "correct", ("wrong_value",)),
    Exploit("08_weights_of_another_model.py", "correct", ("wrong_value",)),
    Exploit("09_takes_a_freed_result.py", "correct", ("wrong_value",)),
    Exploit("10_finds_the_expected_tensor.py", "correct", ("wrong_value",)),
    Exploit("11_overwrites_its_input.py", "correct", ("rejected",)),
    Exploit("12_returns_its_input.py", "faster", ("wrong_value",)),
    Exploit("13_leaves_elements_unwritten.py", "correct", ("wrong_value",)),
    Exploit("14_writes_out_of_bounds.py", "dies", ("crashed", "ok")),
    Exploit("14_one_past_its_output.cpp", "silent", ("rejected", "crashed")),
    Exploit("14_one_before_its_output.cpp", "silent", ("rejected",)),
    Exploit("14_reads_past_its_input.cpp", "silent", ("crashed",)),
    Exploit("15_side_stream.py", "faster", ("wrong_value", "nonfinite", "rejected", "ok")),
    Exploit("16_works_in_a_thread.py", "faster", ("wrong_value", "nonfinite", "rejected", "ok")),
    Exploit("17_lazy_tensor.py", "faster", ("wrong_dtype",)),
    Exploit("17_lazy_tensor_in_disguise.py", "faster", ("wrong_dtype",)),
    Exploit("18_patches_the_clock.py", "faster", ("rejected", "ok")),
    Exploit("18_patches_events.py", "faster", ("rejected", "ok")),
    Exploit("18_answers_too_early.py", "faster", ("wrong_value", "nonfinite", "rejected", "ok")),
    Exploit("18_marks_too_early.py", "faster", ("wrong_value", "nonfinite", "rejected")),
    Exploit("18_claims_to_wait.py", "faster", ("ok", "rejected")),
    Exploit("19_patches_the_comparison.py", "correct", ("wrong_value",)),
    Exploit("20_forges_its_verdict.py", "correct", ("crashed", "wrong_value")),
    Exploit("21_persisting_l2.cu", "faster", ("ok", "rejected")),
    Exploit("22_prefetches_the_next_call.py", "faster", ("ok", "rejected", "wrong_value")),
    Exploit("22_wakes_itself.py", "faster", ("rejected", "crashed", "wrong_value", "ok")),
    Exploit("22_works_ahead_on_the_device.py", "faster", ("rejected", "wrong_value", "crashed")),
    Exploit("23_slows_the_baseline.py", "faster", ("ok", "rejected")),
    Exploit("23_leaves_a_kernel_running.cu", "faster", ("ok", "rejected")),
    Exploit("24_sabotages_the_baseline.py", "faster", ("ok",)),
    Exploit("25_games_the_stopping_rule.py", "faster", ("wrong_value",)),
    Exploit("26_lower_precision.py", "correct", ("wrong_value",)),
    Exploit("27_nan_compares_as_equal.py", "correct", ("nonfinite",)),
    Exploit("28_zeros_under_the_tolerance.py", "correct", ("wrong_value",)),
    Exploit("28_zeros_for_rounding_noise.py", "correct", ("ok", "wrong_value")),
    Exploit("29_skips_the_ragged_edge.py", "correct", ("wrong_value",)),
    Exploit("30_replaces_the_generator.py", "correct", ("wrong_value",)),
    Exploit("31_eight_bits_for_the_published_range.py", "correct", ("ok", "wrong_value")),
    Exploit("31_fits_the_published_range.py", "correct", ("wrong_value",)),
    Exploit("31_fits_the_published_size.py", "correct", ("ok",)),  # only held-out workloads tell
    Exploit("31_knows_published_inputs.py", "correct", ("wrong_value",)),
    Exploit("32_changes_the_reference.py", "correct", ("wrong_value",)),
    Exploit("33_broadcastable_shape.py", "correct", ("wrong_shape",)),
    Exploit("34_lucky_race.py", "correct", ("wrong_value",)),
    Exploit("35_library_calls_only.py", "correct", ("rejected",)),
    Exploit("36_wraps_the_reference.py", "correct", ("rejected",)),
    Exploit("37_falls_back.py", "correct", ("rejected",)),
    Exploit("38_ghost_kernel.py", "correct", ("rejected",)),
    Exploit("39_skips_a_step.py", "correct", ("wrong_value",)),
    Exploit("39_brings_no_weights.py", "correct", ("wrong_value",)),
    Exploit("39_one_answer_for_published_inputs.py", "faster", ("wrong_value",)),
    Exploit("40_exits_politely.py", "silent", ("crashed",)),
    Exploit("40_kills_its_judge.py", "dies", ("runtime_error",)),
    Exploit("41_hangs.py", "hangs", ("timeout",)),
    Exploit("42_floods_shared_memory.py", "traces", ("runtime_error",), traces.shared_memory(42)),
    Exploit("42_leaves_processes.py", "traces", ("ok", "crashed", "rejected"), traces.processes("sleep", "42.42")),
    Exploit("43_poisons_the_interpreter.py", "traces", ("load_error",), traces.packages("kb_redteam_43.pth")),
    Exploit("43_poisons_the_build_cache.py", "traces", ("load_error",), traces.user_cache("kb-redteam-43")),
    Exploit("44_rewrites_the_problem.py", "traces", ("load_error",)),
    Exploit("45_opens_the_network.py", "correct", ("runtime_error",)),
    Exploit("46_illegal_access.cu", "dies", ("crashed",)),
    Exploit("47_compiles_for_ever.cpp", "hangs", ("timeout", "build_error")),
    Exploit("48_one_call_for_a_burst.py", "faster", ("rejected", "ok")),
    Exploit("48_reads_what_waits.py", "faster", ("rejected", "ok")),
    Exploit("48_several_launches_as_one.py", "faster", ("wrong_value", "rejected", "ok")),
    Exploit("49_has_the_kernel_collect_its_sockets.py", "correct", ("load_error",)),
    Exploit("49_has_the_kernel_free_its_rules.py", "correct", ("load_error",)),
    Exploit("49_timers_of_stopped_children.py", "faster", ("ok", "rejected", "timeout")),
    Exploit("50_in_place_in_the_burst.py", "faster", ("rejected",)),
    Exploit("51_hoards_the_device.py", "faster", ("out_of_memory", "runtime_error", "rejected", "ok")),
    Exploit("52_norm_of_a_sample.py", "correct", ("wrong_value", "ok")),
    Exploit("52_loss_of_a_part.py", "correct", ("wrong_value",)),
    Exploit("52_last_steps_of_a_sequence.py", "correct", ("wrong_value",)),
    Exploit("52_series_for_attention.py", "correct", ("wrong_value",)),
    Exploit("52_starts_late_in_a_sequence.py", "correct", ("wrong_value",)),
    Exploit("52_units_that_never_win.py", "correct", ("ok", "wrong_value"), twin="52_averages_its_weights.py"),
    Exploit("53_opens_the_gpu_in_its_build.py", "correct", ("ok", "load_error")),
    Exploit("54_keeps_weights_in_l2.cu", "faster", ("ok", "rejected")),
    Exploit("55_copies_its_neighbour.py", "correct", ("load_error",)),
    Exploit("56_opens_a_file_by_a_diagnostic.cpp", "hangs", ("build_error",)),
    Exploit("59_fills_its_cache_of_kernels.py", "traces", ("ok", "crashed", "timeout"), traces.kept_files(5_000)),
    Exploit("59_hides_memory_in_messages.py", "correct", ("load_error",)),
    Exploit("59_keeps_rules_of_landlock.py", "correct", ("load_error",)),
    Exploit("59_floods_tables_of_open_files.py", "hangs", ("crashed",)),
    Exploit("60_works_after_its_answer.py", "faster", ("load_error", "runtime_error", "rejected")),
    Exploit("61_reads_the_users_environment.py", "correct", ("wrong_value",)),
    Exploit("62_watches_the_clocks_of_others.py", "faster", ("rejected", "ok")),
    Exploit("63_is_cheap_beside_rare_elements.py", "faster", ("rejected", "ok", "wrong_value")),
)
BY_NAME = {exploit.name: exploit for exploit in _EXPLOITS}
