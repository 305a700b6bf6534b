"""Sources of a run, and the files that they take in, kept beside its log."""

import hashlib
import json

import logs
import pytest

from harness.solution.discover import discover
from kernelbench import suite
from kernelbench.run_files import sources


@pytest.fixture
def kept(tmp_path):
    """Return a function that keeps a solution of these files, and gives the run, its result and what is kept."""

    def kept(files):
        folder = tmp_path / "solutions"
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        (solution,) = discover(folder).solutions
        result = logs.result("1/19", name=solution.name)
        result.solution |= {"sha256": solution.sha256, "helpers": solution.helpers}
        run = logs.run(tmp_path / "run", result)
        sources.keep(run, solution, suite.find("1/19")[0])
        return run, result, run.path / "sources" / f"{solution.helpers}.helpers.json"

    return kept


def test_helper_files_are_kept_by_their_paths_from_the_source_on(kept):
    files = {"level1/tile.cuh": '#include "../more.cuh"\n', "more.cuh": "// é\n"}
    run, result, _ = kept({"level1/1_19.cu": '#include "tile.cuh"\n', **files})
    assert sources.helpers_of(run, result) == {"tile.cuh": '#include "../more.cuh"\n', "../more.cuh": "// é\n"}


def test_a_helper_that_is_no_text_is_named_only(kept):
    run, result, _ = kept({"1_19.py": "W = open('weights.bin')\n", "weights.bin": b"\xff\x00"})
    assert sources.helpers_of(run, result) == {"weights.bin": None}


def test_no_more_is_read_of_all_helpers_than_is_kept_of_them(kept, monkeypatch):
    """Of files that are no text any number was read, while the next candidate was timed."""
    monkeypatch.setattr(sources, "_MOST_HELPER_BYTES", 100)
    files = {"a.bin": b"\xff" * 80, "b.txt": "x" * 80}
    run, result, _ = kept({"1_19.py": "A, B = open('a.bin'), open('b.txt')\n", **files})
    assert sources.helpers_of(run, result) == {"a.bin": None, "b.txt": None}


def test_what_takes_more_room_as_json_than_there_is_leaves_code_its_own(kept, monkeypatch):
    """Each NUL of a sparse file took six bytes: a candidate added 100 MB to a run, and nobody read its helper."""
    monkeypatch.setattr(sources, "_MOST_HELPER_BYTES", 1000)
    source = "import helper\nDATA = 'a.bin'\n"
    run, result, file = kept({"1_19.py": source, "a.bin": bytes(400), "helper.py": "X = 1\n"})
    assert sources.helpers_of(run, result) == {"a.bin": None, "helper.py": "X = 1\n"}
    assert file.stat().st_size < 1000


def test_a_solution_of_one_file_has_no_helpers(kept):
    run, result, file = kept({"1_19.py": "import torch\n"})
    assert sources.helpers_of(run, result) == {} and not file.exists()


@pytest.mark.parametrize("change", ["text", "name", "left out", "no JSON", "gone", "a link", "a surrogate"])
def test_files_that_are_not_those_that_were_evaluated_are_none(kept, tmp_path, change):
    """A run may be somebody else's, and what is kept in it is shown to a reviewer."""
    run, result, file = kept({"1_19.py": "import helper, other\n", "helper.py": "X = 1\n", "other.py": ""})
    content = json.loads(file.read_text())
    files = content["files"]
    if change == "text":
        files[0]["text"] += "#"
    elif change == "name":
        files[0]["name"] = "harmless.py"
    elif change == "left out":
        files.pop()
    elif change == "a surrogate":
        files[0]["text"] = "\ud800"
    file.write_text("[" if change == "no JSON" else json.dumps(content))
    if change in ("gone", "a link"):
        file.rename(tmp_path / "moved")
    if change == "a link":
        file.symlink_to(tmp_path / "moved")
    assert sources.helpers_of(run, result) is None


@pytest.mark.parametrize("link", ["the file", "its folder", "a folder that the configuration names", ""])
def test_a_source_is_not_read_by_a_link_in_a_run(tmp_path, link):
    """Whoever handed over a run could try what a file of its reader holds: a record with the right digest showed it."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "pin.py").write_text("4711")
    result = logs.result("1/19", name="pin.py")
    result.solution |= {"sha256": hashlib.sha256(b"4711").hexdigest(), "helpers": ""}
    run = logs.run(tmp_path / "run", result)
    run.config["solutions"] = "solutions"
    place = run.path / "solutions"
    if link == "its folder":
        place.symlink_to(secret)
    elif link.startswith("a folder"):
        (run.path / "x").symlink_to(tmp_path)
        run.config["solutions"] = f"{run.path}/../run/x/secret"
    else:
        place.mkdir()
        (place / "pin.py").symlink_to(secret / "pin.py") if link else (place / "pin.py").write_text("4711")
    assert sources.source_of(run, result) == (None if link else "4711")


@pytest.mark.parametrize("name", ["../secret.py", "{folder}/secret.py", "a/../../secret.py"])
def test_a_source_lies_in_the_directory_of_solutions(tmp_path, name):
    (tmp_path / "secret.py").write_text("4711")
    (tmp_path / "solutions" / "a").mkdir(parents=True)
    result = logs.result("1/19", name=name.format(folder=tmp_path))
    result.solution |= {"sha256": hashlib.sha256(b"4711").hexdigest(), "helpers": ""}
    run = logs.run(tmp_path / "run", result)
    run.config["solutions"] = str(tmp_path / "solutions")
    assert sources.source_of(run, result) is None


@pytest.mark.parametrize("field", ["name", "kind", "sha256", "helpers"])
@pytest.mark.parametrize("value", ["a\0b", "a\ud800b", "a/" * 5000], ids=["a zero", "half a character", "long"])
def test_what_no_path_can_be_has_no_source(tmp_path, field, value):
    """A zero byte ended the page of all runs."""
    result = logs.result("1/19")
    result.solution |= {"helpers": "", field: value}
    run = logs.run(tmp_path / "run", result)
    assert sources.source_of(run, result) is None and not sources.helpers_of(run, result)


@pytest.mark.parametrize(("prompt", "kept"), [("a text", 0), (["a text"], 0), ([{"role": "user"}], 1), (None, 1)])
def test_an_attempt_has_the_messages_that_its_model_was_asked_with(prompt, kept):
    """With a text in their place the whole panel of a result could not be shown."""
    line = json.dumps({"problem": "1/19", "sample": 0, "prompt": prompt})
    assert len(sources.attempts_in([line.encode()])) == kept
