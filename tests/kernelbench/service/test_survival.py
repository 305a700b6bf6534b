"""What was accepted has exactly one answer, whatever is killed meanwhile."""

import json
from collections import Counter

import load
import pytest
from serving import Serving


def survive(folder, clients, each, kills):
    serving = Serving(folder)
    try:
        found, memory = load.run(serving, clients, each, kills)
        rows = load.rows(serving)
    finally:
        serving.end()
    wanted = {(n, k): load.expected(k) for n in range(clients) for k in range(each)}
    assert Counter(found.values()) == Counter(wanted.values()) and found == wanted
    assert len(rows) == len(wanted) and all(state == "done" for state, _ in rows.values())
    for name, (_, answer) in rows.items():
        assert json.loads(answer)["result"]["status"] == load.LABELS[int(name[16:], 16)]
    return memory


@pytest.mark.slow
def test_each_submission_has_one_answer_although_service_judge_and_client_are_killed(tmp_path):
    survive(tmp_path / "service", clients=4, each=10, kills=3)


@pytest.mark.study
@pytest.mark.timeout(7200)
def test_a_thousand_submissions_of_32_clients_with_nine_kills_and_flat_memory(tmp_path):
    memory = survive(tmp_path / "service", clients=32, each=32, kills=9)
    # the service is started anew three times: what it and its evaluator hold at the end is about what they held first
    assert memory[-1] < 1.5 * memory[0] + (64 << 20), memory
