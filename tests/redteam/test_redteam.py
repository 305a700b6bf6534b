"""The red team against this harness: each program ends as the catalogue says, and the honest ones are ok."""

import pytest
from click.testing import CliRunner

from harness.process.spawn import start_server
from kernelbench.cli import main
from kernelbench.evaluation import judge_process
from kernelbench.redteam.catalogue import BY_NAME, CLASSES, EXPLOITS, HONEST, files
from kernelbench.redteam.examination import MISSED, NOT_RUN, examine


@pytest.fixture(scope="module")
def verdicts():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge_process, "start_server", start_server)  # what cheats meets a judge as `kb` starts it
        rows = examine(None, "cpu")
    return {verdict.program: verdict for row in rows for verdict in (*row.exploits, *row.honest)}


@pytest.mark.parametrize("name", BY_NAME)
def test_an_exploit_gets_nowhere(verdicts, name):
    verdict = verdicts[name]
    if verdict.grade == NOT_RUN:
        pytest.skip(verdict.evidence)
    assert verdict.grade != MISSED and verdict.expected, verdict.evidence


@pytest.mark.parametrize("name", [path.name for path in files(HONEST, set(CLASSES))])
def test_an_honest_program_that_looks_alike_is_ok(verdicts, name):
    verdict = verdicts[name]
    if verdict.grade == NOT_RUN:
        pytest.skip(verdict.evidence)
    assert verdict.grade == "ok", verdict.evidence


@pytest.mark.gpu
def test_nothing_gets_through_on_a_gpu():
    rows = examine(None, "cuda")
    assert {row.number: row.exploits for row in rows if not row.holds} == {}


def test_wrong_classes_are_wrong_usage():
    for numbers in ("0", str(max(CLASSES) + 1), "x", "1,,2"):
        done = CliRunner().invoke(main, ["redteam", "--class", numbers])
        assert done.exit_code == 2 and "list of classes" in done.output


def test_every_exploit_states_its_problem():
    for path in files(EXPLOITS, set(CLASSES)) + files(HONEST, set(CLASSES)):
        assert "kb: problem=" in path.read_text().splitlines()[0]
