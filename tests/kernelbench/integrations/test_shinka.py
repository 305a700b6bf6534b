"""ShinkaEvolve: the two files that it reads, by its own scheduler, and a search with a stand-in model."""

import json

import pytest
from relu_candidates import GOOD, WRONG
from stand_in import StandIn

from kernelbench import EvaluationError
from kernelbench.integrations import shinka, tasks


@pytest.fixture
def files(tmp_path):
    """``metrics.json`` and ``correct.json`` of a source."""

    def files(source):
        program = tmp_path / "main.py"
        program.write_text(source)
        command = ["--program_path", str(program), "--results_dir", str(tmp_path / "results")]
        shinka.main("1/19", command, device="cpu")
        return [json.loads((tmp_path / "results" / name).read_text()) for name in ("metrics.json", "correct.json")]

    return files


@pytest.mark.slow
def test_a_correct_program(files):
    metrics, correct = files(GOOD)
    assert metrics["combined_score"] >= 0.3 and metrics["public"]["correct"] == 1
    assert correct == {"correct": True, "error": None}


@pytest.mark.slow
def test_a_wrong_program_has_its_feedback_in_both(files):
    metrics, correct = files(WRONG)
    assert metrics["combined_score"] == 0 and "first at" in metrics["text_feedback"]
    assert not correct["correct"] and "first at" in correct["error"]


def test_a_fault_of_the_machine_leaves_no_score(files, tmp_path, monkeypatch, capsys):
    def lost(*_, **__):
        raise EvaluationError("the GPU was lost\x1b[2J")

    monkeypatch.setattr(tasks, "reward", lost)
    with pytest.raises(SystemExit) as ended:
        files(GOOD)
    assert ended.value.code == 3 and not (tmp_path / "results").exists()
    said = capsys.readouterr().err
    assert "the GPU was lost" in said and "\x1b" not in said


def test_the_example_evolves_a_program(example, tmp_path):
    pytest.importorskip("shinka", reason="pip install 'kernelbench[shinka]', in an environment of its own")
    said = f"<NAME>\nclamp\n</NAME>\n<DESCRIPTION>\none pass\n</DESCRIPTION>\n<CODE>\n```python\n{GOOD}```\n</CODE>\n"
    with StandIn(lambda request, number: said) as model:
        at = f"local/m@{model.base_url}"
        example("shinka_search.py", "--model", at, "--generations", 2, "--out", tmp_path / "o")
    found = sorted((tmp_path / "o").rglob("correct.json"))
    assert model.requests and len(found) >= 2 and all(json.loads(file.read_text())["correct"] for file in found)
