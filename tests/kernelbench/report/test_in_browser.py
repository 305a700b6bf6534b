"""The page in a real browser: sort, filter, open, keys, themes, a phone, hostile text, many results."""

import hashlib
import json
import random

import pytest
from browser import click, colours, opened, press, problems, resize, some, texts, wait
from logs import judged, result, rewritten, run

from harness.result import Status
from kernelbench.run_files import sources

HOSTILE = """</script></style><script>document.title = 'owned'</script><img src=x onerror="document.title='owned'">
<!-- <script> ]]> &lt;b&gt; {{data}} \u2028 \ud800"""
WORDS = HOSTILE.encode("utf-8", "replace").decode()
LINE = WORDS.replace("\n", " ").replace("\u2028", " ")  # a log with more in a name is refused


def keep(made, one, text):
    content = text.encode()
    one.solution["sha256"] = hashlib.sha256(content).hexdigest()
    folder = made.path / sources.SOURCES
    folder.mkdir(exist_ok=True)
    (folder / f"{one.solution['sha256']}.{one.solution['kind']}").write_bytes(content)


@pytest.mark.slow
def test_rows_are_sorted_by_a_click_on_a_column(browser, tmp_path):
    opened(browser, tmp_path, some(tmp_path))
    assert problems(browser) == ["1/1", "1/2", "1/2", "2/1"]
    click(browser, "th.k-speedup button")
    assert problems(browser) == ["2/1", "1/1", "1/2", "1/2"]  # the failed one, without a speedup, comes last
    assert browser.execute_script("return document.querySelector('th.k-speedup').ariaSort") == "descending"
    click(browser, "th.k-speedup button")
    assert problems(browser) == ["1/2", "1/1", "2/1", "1/2"]


@pytest.mark.slow
def test_every_workload_has_its_row_and_what_all_of_them_are_worth(browser, tmp_path):
    parts = [result("1/1", 1.0, baseline_ms=3.0), result("1/1", 1.0, baseline_ms=1.0)]
    for part, name in zip(parts, ("full", "llm")):
        part.workload = {"name": name}
    opened(browser, tmp_path, run(tmp_path / "mine", *parts, result("1/2", 0.5, seed=1)))
    assert texts(browser, "#table tbody .k-workload") == ["full", "llm", "small"]
    assert [text[:3] for text in texts(browser, "#table tbody .k-all")] == ["2.0", "2.0", ""]
    click(browser, "th.k-all button")
    assert problems(browser) == ["1/1", "1/1", "1/2"]
    click(browser, "#table tbody a")
    wait(browser, "document.querySelector('#content .figures')?.textContent.includes('geometric mean 1.7')")
    opened(browser, tmp_path, some(tmp_path, "other"))
    assert not texts(browser, ".k-workload, .k-all")  # of one workload a solution, none is said


def test_rows_are_filtered_by_words_and_by_facets(browser, tmp_path):
    opened(browser, tmp_path, some(tmp_path))
    press(browser, "/semicolon build")
    assert problems(browser) == ["1/2"] and texts(browser, "#count") == ["1 of 4"]
    press(browser, " nothing")
    assert texts(browser, "#table tr[data-id]") == [] and wait(browser, "!document.querySelector('#empty').hidden")
    click(browser, "#reset")
    assert len(problems(browser)) == 4
    click(browser, ".outcomes button.g-rejected")
    assert problems(browser) == ["2/1"]


def test_a_candidate_opens_with_all_that_is_known(browser, tmp_path):
    made = some(tmp_path)
    for one, text in zip(made.results, ("def forward", "int main", "class ModelNew", "x")):
        keep(made, one, text)
    made = rewritten(made)
    opened(browser, tmp_path, made)
    click(browser, "#table tbody tr[data-id='2'] a")
    wait(browser, "document.querySelector('#panel').open && document.querySelector('.source')")
    assert "class ModelNew" in texts(browser, ".source")[1] and "class Model(" in texts(browser, ".source")[0]
    assert texts(browser, ".source:nth-child(2) .t-keyword") == ["class"]
    assert len(texts(browser, ".timings svg")) == 2 and len(texts(browser, ".timings .sample")) == 2 * 51
    assert "build error" in texts(browser, ".attempts")[0]
    press(browser, "k")
    wait(browser, "location.hash === '#result-1'")
    assert wait(browser, "document.querySelector('.message')?.textContent.includes('no semicolon')")
    click(browser, ".attempts a[href='#result-2']")
    wait(browser, "document.querySelector('#panel').dataset.id === '2'")
    press(browser, "\ue00c")  # escape
    assert wait(browser, "!document.querySelector('#panel').open && location.hash === '#results'")
    assert browser.execute_script("return document.activeElement.closest('tr').dataset.id") == "2"


def test_a_rejected_one_shows_its_rule(browser, tmp_path):
    opened(browser, tmp_path, some(tmp_path))
    browser.get(browser.current_url + "#result-3")
    browser.refresh()
    assert "overwrites_inputs" in wait(browser, "document.querySelector('.verdict')?.textContent")


def test_everything_can_be_done_with_keys(browser, tmp_path):
    opened(browser, tmp_path, some(tmp_path))
    press(browser, "jjk")
    assert texts(browser, "tr.current .open b") == ["1/1"]
    press(browser, "\ue015")  # down
    press(browser, "\ue007")  # enter
    wait(browser, "document.querySelector('#panel').open")
    press(browser, "j")
    wait(browser, "location.hash === '#result-2'")
    press(browser, "\ue00c")
    wait(browser, "!document.querySelector('#panel').open")
    press(browser, "G")
    assert texts(browser, "tr.current .open b") == ["2/1"]
    press(browser, "?")
    assert "next result" in texts(browser, "#keys")[0] and wait(browser, "document.querySelector('#keys').open")
    press(browser, "\ue00c")
    press(browser, "/")
    assert browser.execute_script("return document.activeElement.id") == "filter"
    press(browser, "\ue00c")
    assert browser.execute_script("return document.activeElement === document.body")


def test_a_key_that_comes_before_the_end_of_the_panel_is_told_counts(browser, tmp_path):
    opened(browser, tmp_path, some(tmp_path))
    press(browser, "j\ue007")  # down, enter
    wait(browser, "document.querySelector('#panel').open")
    browser.execute_script(
        "document.querySelector('#panel').addEventListener('close', () => { window.told = true; });"
        "document.querySelector('#panel').close();"
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'G', bubbles: true}));"
    )
    wait(browser, "window.told")
    assert texts(browser, "tr.current .open b") == ["2/1"]


def test_it_is_dark_where_the_system_is_and_can_be_switched(browser, tmp_path):
    def background():
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    opened(browser, tmp_path, some(tmp_path))
    light = background()
    colours(browser, "dark")
    dark = background()
    assert light == "rgb(255, 255, 255)" and dark != light
    press(browser, "t")
    assert background() == light
    press(browser, "t")
    assert background() == dark
    browser.execute_script("localStorage.clear()")


def test_a_phone_scrolls_down_only(browser, tmp_path):
    resize(browser, 360, 740)
    made = some(tmp_path, "a-run-with-a-name-that-is-longer-than-a-phone-is-wide-" * 2)
    keep(made, made.results[0], "x" * 500)
    opened(browser, tmp_path, rewritten(made))
    width = "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
    assert browser.execute_script(f"return {width}") <= 360
    assert browser.execute_script("return document.querySelector('#table tr[data-id]').offsetHeight") >= 44
    browser.execute_script("const s = document.querySelector('#sort'); s.value = 'speedup'; "
                           "s.dispatchEvent(new Event('change'))")  # fmt: skip
    assert problems(browser)[0] == "2/1"  # without a head to click on
    click(browser, "#table tbody tr[data-id='0'] a")
    wait(browser, "document.querySelector('.source')")
    assert browser.execute_script("return document.querySelector('#content').scrollWidth") <= 360


def test_text_of_candidates_does_nothing_but_be_read(browser, tmp_path):
    broken = result("1/1", status=Status.RUNTIME_ERROR, message=WORDS, log=WORDS, name=LINE, rule=LINE)
    made = run(tmp_path / "mine", broken)
    made.results[0].problem_name = LINE
    keep(made, made.results[0], WORDS)
    line = {"problem": "1/1", "sample": 0, "answer": WORDS, "prompt": [{"role": WORDS, "content": WORDS}]}
    (made.path / sources.TRAJECTORY).write_text(json.dumps(line) + "\n")
    opened(browser, tmp_path, rewritten(made))
    title = browser.title
    click(browser, "#table tbody a")
    wait(browser, "document.querySelector('.source')")
    browser.execute_script("document.querySelectorAll('details').forEach((node) => { node.open = true })")
    assert texts(browser, ".source pre .line")[-1:] != [] and "<img src=x" in texts(browser, ".source pre")[-1]
    assert WORDS in texts(browser, ".said pre") and WORDS in texts(browser, ".message")
    assert browser.title == title == "mine: kernelbench"
    assert browser.execute_script("return document.querySelectorAll('img, #panel script').length") == 0


@pytest.mark.slow
def test_a_candidate_opens_whose_times_hardly_differ_and_whose_source_has_many_words(browser, tmp_path):
    one = result("1/1", 1.0)
    one.timing |= {"median_ms": 1e11, "samples_ms": [1e11 + (2e-5 if i % 9 == 0 else 0) for i in range(51)]}
    made = run(tmp_path / "mine", one)
    keep(made, made.results[0], f'"""#include {"1+" * 140_000}"""')
    opened(browser, tmp_path, rewritten(made))
    click(browser, "#table tbody a")
    wait(browser, "document.querySelector('.source .t-number') && document.querySelector('.timings .sample')")
    assert len(texts(browser, ".timings .sample")) == 2 * 51 and not texts(browser, "#panel .message")


def test_attempts_of_a_solver_are_listed_with_what_was_said(browser, tmp_path):
    made = some(tmp_path)
    lines = [
        {"problem": "1/2", "sample": 0, "turn": 0, "tokens": {"prompt": 1200, "completion": 80}, "cost_usd": 0.01,
         "prompt": [{"role": "user", "content": "make it fast"}], "answer": "```int x```"},
        {"problem": "1/2", "sample": 1, "turn": 1, "parent": 0},
        {"problem": "1/2", "sample": 2, "turn": 2, "parent": 1, "answer": "I give up"},
    ]  # fmt: skip
    (made.path / sources.TRAJECTORY).write_text("".join(json.dumps(line) + "\n" for line in lines))
    opened(browser, tmp_path, made)
    click(browser, "#table tbody tr[data-id='1'] a")
    wait(browser, "document.querySelector('.attempts')")
    assert texts(browser, ".attempts th") == [
        "Attempt", "Status", "Speedup", "Parent", "Turn", "Tokens in", "Tokens out", "Cost", "Solution",
    ]  # fmt: skip
    cells = "[...tr.cells].map((td) => td.textContent)"
    rows = browser.execute_script(f"return [...document.querySelectorAll('.attempts tbody tr')].map((tr) => {cells})")
    assert [row[:5] for row in rows] == [
        ["0", "build error", "", "", "0"], ["1", "ok", rows[1][2], "0", "1"], ["2", "no result", "", "1", "2"],
    ]  # fmt: skip
    assert rows[0][5:8] == ["1,200", "80", "$0.0100"] and texts(browser, ".said") == ["usermake it fast"]


def test_the_policy_forbids_every_other_script(browser, tmp_path):
    opened(browser, tmp_path, some(tmp_path))
    browser.execute_script("const s = document.createElement('script'); s.textContent = 'document.title = 1'; "
                           "document.body.append(s)")  # fmt: skip
    assert browser.title == "mine: kernelbench"
    blocked = [entry for entry in browser.get_log("browser") if "Content Security Policy" in entry["message"]]
    assert len(blocked) == 1


@pytest.mark.slow
def test_many_results_are_sorted_filtered_and_reached(browser, tmp_path):
    draw = random.Random(0)
    results = [result(f"1/{n % 100 + 1}", draw.uniform(0.2, 2), sample=n // 100, seed=n) for n in range(3000)]
    made = run(tmp_path / "many")
    made.results.extend(results)
    opened(browser, tmp_path, rewritten(made))
    assert texts(browser, "#count") == ["3,000 results"]
    wait(browser, "document.querySelectorAll('#table tr[data-id]').length === 3000")
    press(browser, "G")
    assert texts(browser, "tr.current .open b") == ["1/100"]
    click(browser, "tr.current a")
    assert wait(browser, "document.querySelector('#panel .figures')")
    press(browser, "\ue00c")
    press(browser, "/s29.py")
    assert wait(browser, "document.querySelector('#count').textContent === '100 of 3,000'")


def test_two_runs_are_told_apart_and_compared(browser, tmp_path):
    opened(browser, tmp_path, some(tmp_path, "one"), run(tmp_path / "two", result("1/1", 0.25, seed=9)))
    assert texts(browser, ".runs tbody tr td:first-child b") == ["one", "two"]
    assert "Signed area of two over one" in texts(browser, ".charts")[0]
    assert len(texts(browser, ".charts svg[aria-label=Fast-p] .curve:not(.filtered)")) == 2
    assert len(texts(browser, ".charts svg[aria-label=Attempt-Fast-p] .curve")) == 2
    assert set(texts(browser, "#table tbody .k-run")) == {"one", "two"}


def test_the_curve_of_the_speed_of_light_ends_at_the_axis_of_the_runs(browser, tmp_path):
    """It went on over the page, where a problem could be thousands of times as fast."""
    bounds = {"1/1": 1e-4, "1/2": 0.4}  # ms, of baselines that take 1
    made = run(tmp_path / "mine", *(judged(problem, 2.0, sol={"t_sol_fp16_ms": ms}) for problem, ms in bounds.items()))
    opened(browser, tmp_path, made)
    chart = "document.querySelector('.charts svg[aria-label=Fast-p]')"
    ends = f"[{chart}.querySelector('.curve.limit').getBBox(), {chart}.querySelector('.axis').getBBox()]"
    curve, axis = wait(browser, f"{ends}.map((box) => [box.x, box.x + box.width])")
    assert axis[0] <= curve[0] and curve[1] <= axis[1] + 0.01
