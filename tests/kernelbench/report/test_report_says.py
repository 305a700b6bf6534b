"""The page's words in a real browser: verdicts, figures, names, findings; every row can be found and printed."""

import json

import pytest
from browser import click, opened, press, problems, resize, some, texts, wait
from logs import result, rewritten, run

from harness.result import Status
from kernelbench.run import Run


@pytest.mark.parametrize("problems", [None, "level1"])
def test_a_run_without_results_is_a_page_without_charts(browser, tmp_path, problems):
    opened(browser, tmp_path, run(tmp_path / "new", problems=problems))
    assert texts(browser, "#none") == ["This run has no results."]
    assert texts(browser, "svg, figure") == [] and texts(browser, ".runs tbody td:nth-child(3)") == ["–"]
    shown = "[...document.querySelectorAll('#toolbar, #table, #charts, #reset')].filter((node) => !node.hidden)"
    assert browser.execute_script(f"return {shown}") == []


def test_an_empty_run_beside_another_has_no_curve(browser, tmp_path):
    opened(browser, tmp_path, run(tmp_path / "new"), some(tmp_path))
    curves = ".charts svg[aria-label=Fast-p] .curve"
    assert len(texts(browser, f"{curves}:not(.filtered)")) == 1
    assert len(texts(browser, f"{curves}.filtered")) == 1  # its results are PyTorch code: one filtering leaves them out
    assert len(texts(browser, f"{curves}.c1")) == 2  # both in its run's colour
    assert "Signed area" not in texts(browser, ".charts")[0] and set(texts(browser, "#table tbody .k-run")) == {"mine"}


def with_verdicts(tmp_path):
    """A faster, a slower, a tied and an unstable result, and a correct one without a speedup."""
    made = run(tmp_path / "mine", *(result(f"1/{n}", ms, seed=n) for n, ms in enumerate((0.763, 2.0, 0.99, 0.5), 1)))
    claims = [("faster", [1.28, 1.33]), ("slower", [0.49, 0.51]), ("tie", [0.98, 1.02]), ("unstable", [0.9, 4.0])]
    for one, (verdict, interval) in zip(made.results, claims):
        one.baselines["eager"] |= {"verdict": verdict, "interval": interval}
    made.results.append(result("1/5", status=Status.OK, baselines={"compile": {"error": "no g++"}}))
    return rewritten(made)


def test_a_verdict_is_a_word_with_its_interval(browser, tmp_path):
    opened(browser, tmp_path, with_verdicts(tmp_path))
    assert texts(browser, "td.k-verdict") == ["faster", "slower", "tie", "unstable"]
    assert texts(browser, "td.k-speedup") == [
        "1.31× [1.28, 1.33]", "0.50× [0.49, 0.51]", "1.00× (tie) [0.98, 1.02]", "unstable [0.90, 4.00]",
    ]  # fmt: skip
    assert texts(browser, "td.k-why") == ["no speedup: no baseline could be timed: compile: no g++"]
    assert "5 ok (1 faster, 1 tie, 1 slower, 1 unstable, 1 without a speedup)" in texts(browser, ".outcomes small")[0]
    click(browser, "th.k-speedup button")
    assert problems(browser) == ["1/1", "1/3", "1/2", "1/4", "1/5"]  # by what counts
    press(browser, "/unstable")
    assert problems(browser) == ["1/4"]
    click(browser, "#table tbody a")
    told = "unstable, [0.90, 4.00], measured: "
    wait(browser, f"document.querySelector('#content .figures')?.textContent.includes('{told}')")


def test_figures_above_the_table_are_settled_and_the_measured_ones_stand_beside(browser, tmp_path):
    opened(browser, tmp_path, with_verdicts(tmp_path))
    _, solved, fast_1, mean, *_ = texts(browser, ".runs tbody td")
    assert solved == "5 of 5"
    assert fast_1.startswith("0.20 [") and fast_1.endswith("measured 0.60")
    assert mean.startswith("0.87× [") and mean.endswith("measured 1.07×filtered –: without 5 library only")


@pytest.mark.slow
def test_every_row_is_found_by_the_browser(browser, tmp_path):
    made = run(tmp_path / "many")
    made.results.extend(result(f"1/{n % 99 + 1}", 0.5, sample=n // 99, name=f"kernel_{n}_end.py") for n in range(1000))
    opened(browser, tmp_path, rewritten(made))
    wait(browser, "!document.querySelector('tbody.waiting')")
    for name in ("kernel_999_end.py", "kernel_0_end.py"):
        assert browser.execute_script("getSelection().removeAllRanges(); return find(arguments[0])", name)
        assert name in browser.execute_script("return getSelection().anchorNode.parentNode.closest('tr').textContent")


def test_a_print_holds_all_rows_and_all_columns(browser, tmp_path):
    long = "a_solution_with_a_name_that_is_longer_than_a_column_is_wide_" * 3
    made = run(tmp_path / "many", *with_verdicts(tmp_path).results)
    made.results.extend(
        result(f"2/{n % 50 + 1}", status=Status.CRASHED, message="why " * 60, sample=n // 50, name=f"{long}{n}.py")
        for n in range(400)
    )
    opened(browser, tmp_path, rewritten(made))
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    resize(browser, 1030, 700)  # A4 landscape
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        hidden = "[...document.querySelectorAll('#table tr[data-id]')].filter((row) => row.offsetHeight < 8).length"
        assert browser.execute_script(f"return {hidden}") == 0
        clipped = "cell.scrollWidth > cell.clientWidth + 1 || !cell.offsetWidth"
        cells = f"[...document.querySelectorAll('#table td')].filter((cell) => {clipped})"
        assert browser.execute_script(f"return {cells}.map((cell) => cell.textContent)") == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 1030
        assert len(texts(browser, "#table tr[data-id]")) == 405
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_run_and_workload_are_named_and_so_is_every_candidate_as_it_is(browser, tmp_path):
    made = run(tmp_path / "My_run", result("1/1", 0.5, name="deep/er/Fused_GELU_kernel__v2.py"), model="a-model")
    made.results[0].problem_name = "min_GPT_new_gelu"
    opened(browser, tmp_path, rewritten(made))
    assert browser.title == "My_run: kernelbench" and texts(browser, "#title") == ["My_run"]
    named = texts(browser, ".runs tbody td")[0]
    assert "workload small" in named and "model a-model" in named
    assert texts(browser, "td.k-problem") == ["1/1 min_GPT_new_gelu"]
    assert texts(browser, "td.k-solution") == ["deep/er/Fused_GELU_kernel__v2.py"]
    click(browser, "#table tbody a")
    wait(browser, "document.querySelector('#panel').open")
    assert "min_GPT_new_gelu" in texts(browser, "#panel h2")[0]
    assert texts(browser, "#panel header p") == [
        "deep/er/Fused_GELU_kernel__v2.py · pytorch · workload small · run My_run"
    ]


def test_findings_are_sentences(browser, tmp_path):
    made = some(tmp_path)
    found = {"file": "a.py", "rule": "library_call", "severity": "info", "explanation": "calls a library's kernel"}
    made.results[0].integrity = {
        "findings": [found | {"line": 3, "code": "F.relu"}, found | {"line": 9, "code": "F.gelu"}],
        "track": "open", "own_share": 0.25, "own_kernels": {"relu(float*)": 0.25}, "faster_than_direct": False,
    }  # fmt: skip
    opened(browser, tmp_path, rewritten(made))
    click(browser, "#table tbody a")
    wait(browser, "document.querySelector('.findings')")
    assert texts(browser, ".findings li") == [
        "library_call (info): the source calls a library's kernel: line 3 (F.relu), line 9 (F.gelu).",
        "25 % of the GPU time is spent in kernels of its own: relu(float*) 25 %.",
        "Library kernels were allowed (track open).",
    ]


def test_what_was_not_evaluated_is_listed_with_the_reason(browser, tmp_path):
    made = some(tmp_path)
    entry = {"kind": "skipped", "problem": "1/7", "problem_name": "matmul_small_k", "solution": "k_7.py", "sample": 0,
             "workload": "full", "reason": "needs 24 GB, 20 are free", "after": 4}  # fmt: skip
    lines = [entry, {"kind": "unmapped", "files": [{"solution": "notes.py", "reason": "it names no problem"}]}]
    (made.path / "unevaluated.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    opened(browser, tmp_path, Run.load(made.path))
    assert texts(browser, "#unevaluated h2") == ["Not evaluated (2)"]
    assert texts(browser, "#unevaluated tbody td") == [
        "1/7 matmul_small_k", "k_7.py", "full", "needs 24 GB, 20 are free", "", "notes.py", "", "it names no problem",
    ]  # fmt: skip
    assert texts(browser, ".outcomes a[href='#unevaluated']") == ["2 not evaluated"]
    opened(browser, tmp_path, some(tmp_path, "other"))
    assert wait(browser, "document.querySelector('#unevaluated').hidden")


def test_any_number_of_files_that_were_not_evaluated_leaves_the_page_to_the_results(browser, tmp_path):
    """150,000 in the folder of one author took more arguments than a call has, and nobody had a table."""
    made = some(tmp_path)
    files = [{"solution": f"{number}.py", "reason": "it names no problem"} for number in range(150_000)]
    (made.path / "unevaluated.jsonl").write_text(json.dumps({"kind": "unmapped", "files": files}) + "\n")
    opened(browser, tmp_path, Run.load(made.path))
    assert texts(browser, "#unevaluated h2") == ["Not evaluated (150,000)"]
    assert len(texts(browser, "#unevaluated tbody tr")) == 1000
    assert texts(browser, "#unevaluated p")[-1] == "And 149,000 more, in unevaluated.jsonl of the runs."
    assert len(texts(browser, "#table tbody a")) == len(made.results)
