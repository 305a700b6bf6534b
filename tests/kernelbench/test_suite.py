"""Selectors, and where the suite is."""

import pytest

from harness.problem.module import ProblemError
from kernelbench import suite

IDS = ["1/1", "1/19", "1/20", "2/7", "3/1"]


@pytest.fixture
def root(tmp_path):
    for problem in IDS:
        level, number = problem.split("/")
        folder = tmp_path / f"level{level}"
        folder.mkdir(exist_ok=True)
        (folder / f"{int(number):03}_x.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "selector, expected",
    [
        ("all", IDS),
        ("1/19", ["1/19"]),
        ("1/2-19", ["1/19"]),
        ("1/019-20", ["1/19", "1/20"]),
        ("level2", ["2/7"]),
        ("level3, 1/1,1/1-5", ["1/1", "3/1"]),
        ("level1&1/19-20", ["1/19", "1/20"]),
        ("all~level1", ["2/7", "3/1"]),
        ("level1 ~ 1/19, 2/7", ["1/1", "1/20", "2/7"]),
        ("level1,level2 & 1/20", ["1/20"]),
        ("smoke", ["1/1", "1/19", "3/1"]),
    ],
)
def test_selectors_name_problems_in_order_and_once(root, selector, expected):
    assert [str(p.id) for p in suite.find(selector, root)] == expected


@pytest.mark.parametrize("selector", ["1/2-18", "level9", "4/1", "1/1,2/9", "sound"])
def test_a_part_that_matches_nothing_is_an_error(root, selector):
    with pytest.raises(suite.SelectorError, match="no problem matches"):
        suite.find(selector, root)


def test_a_selector_has_a_thousand_parts_at_most(root):
    """One of 80,000, in the configuration of a run of others, took 10 GB."""
    assert suite.find(",".join(["1/1"] * 1_000), root)
    with pytest.raises(suite.SelectorError, match="1,001 parts, and at most 1,000 are taken"):
        suite.find(",".join(["1/1"] * 1_001), root)


def test_a_part_that_is_named_again_is_not_looked_up_again(root, monkeypatch):
    """A thousand parts of a small run of others were worked on for 12 s."""
    looked_up = []
    named = suite._named
    monkeypatch.setattr(suite, "_named", lambda part, *given: looked_up.append(part) or named(part, *given))
    found = suite.find("llm," + "1/1, 1/1~1/1," * 300 + "1/19", root)
    assert [str(problem.id) for problem in found] == ["1/19", "3/1"] and looked_up == ["llm", "1/1", "1/19"]


@pytest.mark.parametrize("name", ["loop", "a" * 300, "/".join(["a"] * 3000), "file"])
def test_a_root_of_others_that_cannot_be_read_is_an_error(root, name):
    """A run's configuration names it."""
    (root / "loop").symlink_to("loop")
    (root / "file").touch()
    with pytest.raises((suite.SelectorError, ProblemError)):
        suite.ids("all", root / name)


def test_nothing_left_is_an_error(root):
    with pytest.raises(suite.SelectorError, match="no problem is left"):
        suite.find("level1~all", root)


@pytest.mark.parametrize("selector", ["", "1/1,", "level1&", "relu", "1", "1/", "1/1-", "level", "1/1;1/2"])
def test_a_malformed_selector_shows_examples(root, selector):
    with pytest.raises(suite.SelectorError, match="examples: 1/19"):
        suite.find(selector, root)


def test_the_suite_and_its_subsets():
    assert len(suite.find()) == 250
    assert len(suite.find("llm")) == 59
    assert len(suite.find("smoke")) == 12
    assert {str(problem.id) for problem in suite.find("all~sound")} == {"2/80", "2/83", "3/28"}
