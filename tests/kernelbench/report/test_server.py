"""A run in the browser while it is going: what is written appears, half a line does not, and it ends when told to."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest
from browser import chromium, click, texts, wait
from logs import NO_LOGS, no_log, result, run
from warm_kb import KB

from harness.result import Status
from kernelbench.report.server import Feed
from kernelbench.run import RunError


@contextlib.contextmanager
def serving(path):
    command = [*KB, "serve", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            yield process, re.search(r"http://127\.0\.0\.1:\d+/\S+/", line)[0]
        finally:
            process.kill()


def get(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_new_results_are_handed_out_once(tmp_path):
    made = run(tmp_path / "r", result("1/1", 0.5))
    feed = Feed(made.path)
    first = feed.data(0, "")
    assert [row["problem"] for row in first["rows"]] == ["1/1"] and first["count"] == 1
    assert feed.data(1, first["generation"]) is None
    made.append(result("1/2", status=Status.TIMEOUT))
    update = feed.data(1, first["generation"])
    assert [(row["id"], row["status"]) for row in update["rows"]] == [(1, "timeout")] and not update["reset"]
    assert update["overview"]["runs"][0]["statuses"] == {"ok": 1, "timeout": 1}


def test_what_counts_no_more_goes(tmp_path):
    """The row of a workload that an older content was evaluated on stood beside those of the newer one."""
    small, large, newer = (result("1/1", 0.5, name="a.py", seed=seed) for seed in (0, 0, 1))  # a digest for each seed
    large.workload = {"name": "large"}
    made = run(tmp_path / "r", small, large)
    feed = Feed(made.path)
    first = feed.data(0, "")
    assert sorted(row["id"] for row in first["rows"]) == [0, 1] and first["gone"] == []
    made.append(newer)
    update = feed.data(2, first["generation"])
    assert [row["id"] for row in update["rows"]] == [2] and update["gone"] == [0, 1]
    assert [row["id"] for row in Feed(made.path).data(0, "")["rows"]] == [2]


@pytest.mark.parametrize("name", ["results.jsonl", "trajectory.jsonl"])
def test_a_log_that_is_a_link_is_not_shown(tmp_path, name):
    """A run of somebody else could show what another of ours was asked and answered."""
    private, theirs = run(tmp_path / "private", result("1/1", 0.5)), run(tmp_path / "theirs", result("1/1", 0.5))
    (private.path / name).touch()
    (theirs.path / name).unlink(missing_ok=True)
    (theirs.path / name).symlink_to(private.path / name)
    with pytest.raises(RunError, match=f"{name}.*link"):
        Feed(theirs.path).data(0, "")


def test_half_a_line_is_waited_for(tmp_path):
    made = run(tmp_path / "r", result("1/1", 0.5))
    feed = Feed(made.path)
    generation = feed.data(0, "")["generation"]
    line = json.dumps(result("1/2", 0.5).to_json())
    with (made.path / "results.jsonl").open("a") as log:
        for part in (line[:100], line[100:-1]):
            log.write(part)
            log.flush()
            assert feed.data(1, generation) is None
        log.write("}\n")
    assert [row["problem"] for row in feed.data(1, generation)["rows"]] == ["1/2"]


def test_a_whole_line_that_lacks_its_end_is_shown_as_everywhere_else_and_once(tmp_path):
    """`kb report` showed a last result that `kb serve` did not."""
    made = run(tmp_path / "r", result("1/1", 0.5))
    log = made.path / "results.jsonl"
    with log.open("a") as file:
        file.write(json.dumps(result("1/2", 0.5).to_json()))
    feed = Feed(made.path)
    first = feed.data(0, "")
    assert [row["problem"] for row in first["rows"]] == ["1/1", "1/2"] and feed.data(2, first["generation"]) is None
    made.append(result("1/3", 0.5))
    update = feed.data(2, first["generation"])
    assert [row["problem"] for row in update["rows"]] == ["1/3"] and not update["reset"]


def test_a_log_that_was_replaced_is_read_anew(tmp_path):
    made = run(tmp_path / "r", result("1/1", 0.5), result("1/2", 0.5))
    feed = Feed(made.path)
    generation = feed.data(0, "")["generation"]
    (made.path / "results.jsonl").write_text(json.dumps(result("1/3", 0.5).to_json()) + "\n")
    update = feed.data(2, generation)
    assert update["reset"] and [row["problem"] for row in update["rows"]] == ["1/3"]


def test_a_longer_log_in_its_place_is_read_anew_with_its_configuration(tmp_path):
    """The page showed the first results of the one beside the later ones of the other."""
    made = run(tmp_path / "r", result("1/1", 0.5), result("1/2", 0.5))
    feed = Feed(made.path)
    generation = feed.data(0, "")["generation"]
    shutil.rmtree(made.path)
    run(tmp_path / "r", *(result(f"1/{number}", 0.25) for number in (3, 4, 5)))
    config = json.loads((made.path / "config.json").read_text())
    (made.path / "config.json").write_text(json.dumps(config | {"device": "another"}))
    update = feed.data(2, generation)
    assert update["reset"] and [row["problem"] for row in update["rows"]] == ["1/3", "1/4", "1/5"]
    assert update["overview"]["runs"][0]["device"] == "another"


def test_attempts_that_were_replaced_are_read_anew(tmp_path):
    made = run(tmp_path / "r", result("1/1", status=Status.TIMEOUT, sample=1))
    log = made.path / "trajectory.jsonl"
    log.write_text('{"problem": "1/1", "sample": 1, "turn": 1, "answer": "the first"}\n')
    feed = Feed(made.path)
    generation = feed.data(0, "")["generation"]
    assert feed.detail(0)["attempt"]["answer"] == "the first"
    log.write_text('{"problem": "1/1", "sample": 1, "turn": 1, "answer": "another one"}\n')
    assert feed.data(1, generation)["reset"] and feed.detail(0)["attempt"]["answer"] == "another one"


def test_attempts_of_a_solver_come_with_the_results(tmp_path):
    made = run(tmp_path / "r", result("1/1", status=Status.TIMEOUT, sample=1))
    feed = Feed(made.path)
    generation = feed.data(0, "")["generation"]
    with (made.path / "trajectory.jsonl").open("a") as log:
        log.write('{"problem": "1/1", "sample": 1, "turn": 1, "answer": "a"}\n{"problem": "1/1", "sample": 2, "tu')
        log.flush()
        made.append(result("1/2", 0.5))
        assert [attempt["turn"] for attempt in feed.data(1, generation)["attempts"]] == [1]
        log.write('rn": 2}\n')
    made.append(result("1/3", 0.5))
    assert [attempt["turn"] for attempt in feed.data(2, generation)["attempts"]] == [1, 2]
    assert feed.detail(0)["attempt"]["answer"] == "a" and feed.detail(1)["attempt"] is None


def test_what_is_not_evaluated_comes_too_and_goes_when_it_is_evaluated_after_all(tmp_path):
    made = run(tmp_path / "r", result("1/1", 0.5))
    feed = Feed(made.path)
    generation = feed.data(0, "")["generation"]
    entry = {"kind": "skipped", "problem": "1/2", "problem_name": "own", "solution": "a.py", "sample": 0,
             "workload": "small", "reason": "the GPU was lost", "after": 1}  # fmt: skip
    (made.path / "unevaluated.jsonl").write_text(json.dumps(entry) + "\n")
    update = feed.data(1, generation)
    assert update["unevaluated"] == 1 and update["rows"] == []
    assert [one["reason"] for one in update["overview"]["runs"][0]["unevaluated"]] == ["the GPU was lost"]
    assert feed.data(1, generation, unevaluated=1) is None
    made.append(result("1/2", 0.5, name="a.py"))
    assert feed.data(1, generation, unevaluated=1)["overview"]["runs"][0]["unevaluated"] == []


def test_what_is_no_result_is_named_and_the_rest_kept(tmp_path):
    made = run(tmp_path / "r", result("1/1", 0.5))
    feed = Feed(made.path)
    with (made.path / "results.jsonl").open("a") as log:
        log.write("garbage\n")
    with pytest.raises(RunError, match="line 2, is no result"):
        feed.data(1, "")
    assert feed.detail(0)["record"]["problem"] == "1/1" and feed.detail(1) is None


@pytest.mark.parametrize("name", ["results.jsonl", "trajectory.jsonl", "unevaluated.jsonl"])
@pytest.mark.parametrize("kind", NO_LOGS)
def test_what_is_no_plain_file_is_named(tmp_path, name, kind):
    made = run(tmp_path / "r", result("1/1", 0.5))
    feed = Feed(made.path)
    no_log(made.path / name, kind)
    with pytest.raises(RunError, match=rf"cannot read .*{name}: (it is not a plain file|it is too large)"):
        feed.data(1, "")


def test_it_answers_only_what_it_has_and_only_to_this_machine(tmp_path):
    made = run(tmp_path / "r", result("1/1", 0.5))
    with serving(made.path) as (_, url):
        assert b"kernelbench" in get(url)[1]
        assert json.loads(get(url + "detail/0")[1])["record"]["problem"] == "1/1"
        for address in ("detail/1", "detail/-1", "results.jsonl", "../config.json", "detail/x", "data?since=x"):
            assert get(url + address)[0] in (400, 404), address
        assert get(url, Host="evil.example:80")[0] == 403
        address = urllib.parse.urlsplit(url)
        with socket.create_connection((address.hostname, address.port)) as connection:
            request = f"GET {address.path}/[ HTTP/1.0\r\nHost: localhost:1\r\n\r\n"  # no address at all
            connection.sendall(request.encode())
            assert b" 400 " in connection.recv(100)


def test_it_answers_only_who_was_told_its_address(tmp_path):
    """Another user of the machine, who cannot read the run, read it at the port."""
    made = run(tmp_path / "r", result("1/1", 0.5))
    with serving(made.path) as (_, url):
        address = urllib.parse.urlsplit(url)
        for path in ("/", "/data?since=0", "/detail/0", address.path[:-2] + "/", "/" + "é"):
            assert get(urllib.parse.urljoin(url, urllib.parse.quote(path, "/?=")))[0] == 403, path


def test_who_connects_and_says_nothing_keeps_nobody_waiting(tmp_path):
    """Another user of the machine, who knows no address, held all descriptors."""
    made = run(tmp_path / "r", result("1/1", 0.5))
    with serving(made.path) as (process, url), contextlib.ExitStack() as stack:
        address = urllib.parse.urlsplit(url)
        for _ in range(300):
            stack.enter_context(socket.create_connection((address.hostname, address.port)))
            assert len(os.listdir(f"/proc/{process.pid}/fd")) < 150
        assert get(url)[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0 and process.stderr.read() == ""


def test_a_folder_of_problems_that_cannot_be_read_is_told(tmp_path):
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "1_x.py").touch()
    (tmp_path / "audit.jsonl").write_text("no audit")
    made = run(tmp_path / "r", result("1/1", 0.5), problems="sound", problem_dir=str(tmp_path))
    with serving(made.path) as (process, url):
        assert b"line 1, is no audit" in get(url)[1]
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0 and process.stderr.read() == ""


def test_ctrl_c_ends_it_quietly(tmp_path):
    made = run(tmp_path / "r", result("1/1", 0.5))
    with serving(made.path) as (process, url):
        get(url)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0 and process.stderr.read() == ""


def test_a_run_that_is_not_there_and_a_port_that_is_taken_are_errors(tmp_path):
    made = run(tmp_path / "r")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, status, message in [
            ([tmp_path / "nowhere"], 2, "is no run directory"),
            ([made.path, "--port", port], 3, "choose another --port"),
        ]:
            done = subprocess.run([*KB, "serve", *map(str, arguments)], capture_output=True, text=True, timeout=60)
            assert done.returncode == status and message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_page_follows_the_run(tmp_path):
    made = run(tmp_path / "r", result("1/1", status=Status.TIMEOUT, name="a.py"))
    rows = "[...document.querySelectorAll('#table tr[data-id]')].map((row) => row.textContent).join()"
    with chromium() as browser, serving(made.path) as (process, url):
        browser.get(url)
        wait(browser, f"{rows}.includes('timeout')")
        made.append(result("1/2", 0.5, name="b.py"))
        wait(browser, f"{rows}.includes('1/2')")
        made.append(result("1/1", 0.25, name="a.py", seed=3))  # evaluated again: the newer one replaces it
        wait(browser, f"{rows}.includes('4.0')")
        assert len(texts(browser, "#table tr[data-id]")) == 2 and texts(browser, "#live") == ["following"]
        click(browser, "#table tr[data-id] a")
        wait(browser, "document.querySelector('#panel .figures')")
        process.send_signal(signal.SIGINT)
        wait(browser, "document.querySelector('#live').textContent === 'the server has stopped'")
        errors = [e for e in browser.get_log("browser") if e["level"] == "SEVERE" and "ERR_CONN" not in e["message"]]
        assert not errors, errors


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1", 200), ("localhost", 200), ("evil.example", 403), ("", 403)])
def test_a_browser_names_no_port_where_it_is_80(tmp_path, host, status):
    """`kb serve --port 80` answered nobody."""
    made = run(tmp_path / "r", result("1/1", 0.5))
    with serving(made.path) as (_, url):
        assert get(url, Host=host)[0] == status
