"""What README and guides tell people to type exists: commands and their options, Python names, files, inputs."""

import ast
import contextlib
import importlib
import json
import re
import shlex
import statistics
from collections import Counter
from pathlib import Path

import click
import pytest

from kernelbench.audit.record import Audit
from kernelbench.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "AGENTS.md", ROOT / "problems" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def commands(page):
    """Every `kb ...` in a block of shell, in a row of a table, or between backticks, as words."""
    lines = [line.strip() for block in blocks(page, "") for line in block.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"`(kb [^`]+)`", page.read_text().replace("\n", " "))
    for line in lines:
        for part in re.split(r"&&|\||>", line.partition(" #")[0]):
            if part.strip().startswith("kb "):
                yield shlex.split(part)[1:]


def parse(words, command=main):
    """Let click read the command without running it; a name alone, as in a sentence, only has to exist."""
    if not words:
        return
    if not hasattr(command, "get_command"):
        with contextlib.suppress(click.exceptions.Exit):  # of options such as --help and --list
            command.make_context(command.name, list(words))
        return
    found = command.get_command(None, words[0])
    assert found, f"there is no command {words[0]}"
    parse(words[1:], found)


@pages
def test_commands_exist_with_their_options(page):
    for words in commands(page):
        parse(words)


@pages
def test_python_names_exist(page):
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in ("kernelbench", "harness"):
                module = importlib.import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names)


@pages
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)|src(?:set)?=\"([^\"]+)\"", page.read_text()):
        path = next(filter(None, target))
        assert path.startswith("https://") or (page.parent / path).exists(), path


def test_a_workflow_gives_the_action_inputs_that_it_has():
    action = (ROOT / "action.yml").read_text().partition("\nruns:")[0]
    known = set(re.findall(r"^  ([\w-]+):$", action, re.M))
    block = "".join(blocks(ROOT / "docs" / "ci.md", "yaml"))
    (given,) = re.findall(r"uses: OWNER/kernelbench@main\n +with:\n((?: {10}.*\n)+)", block)
    names = re.findall(r"^ +([\w-]+):", given, re.M)
    assert names and set(names) <= known and {"against", "max-regression"} <= known


def test_what_the_suite_is_worth_is_what_its_audit_says():
    lines = (ROOT / "problems" / "audit.jsonl").read_text().splitlines()
    records = [Audit.from_json(json.loads(line)) for line in lines]
    mutants, killed, published = (
        f"{sum(getattr(one, name) for one in records):,}" for name in ("mutants", "killed", "killed_as_published")
    )
    scores = [one.score for one in records if one.score is not None]
    passing = [one.problem for one in records if one.passing]
    alone = sum(bool(one.passing_as_published) for one in records)
    page = (ROOT / "docs" / "writing-a-problem.md").read_text()
    for row in (
        f"| mutants planted, and killed by the check | {mutants}, and {killed} |",
        f"| of those killed, seen on the published draw alone | {published} |",
        f"lowest | {statistics.median(scores):.2f}, {min(scores):.3f} |",
        f"| problems where a trivial answer passes on the published draw alone | {alone} |",
        f"| where one passes everything | {len(passing)} ({', '.join(sorted(passing))})",
    ):
        assert row in page, row


def test_what_is_said_of_the_red_team_is_what_its_tables_say():
    page = (ROOT / "results" / "README.md").read_text()
    said = " ".join(page.split())
    for folder, text in (
        ("h100", "on an H100 {} are prevented and {} detected ({})"),
        ("cpu", "{} are prevented on a CPU and {} detected ({})"),
    ):
        table = (ROOT / "results" / folder / "redteam.md").read_text()
        grades = Counter(re.findall(r"^\| +\d+ +\|[^|]*\| (\w+)", table, re.M))
        (date,) = re.findall(rf"^\| `{folder}/redteam.md` \|.*\| (\S+) \|$", page, re.M)
        assert text.format(grades["prevented"], grades["detected"], date) in said


def test_what_is_said_of_references_against_themselves_is_what_their_records_say():
    lines = (ROOT / "results" / "h100" / "references" / "results.jsonl").read_text().splitlines()
    speedups = [json.loads(line)["speedup"] for line in lines]
    text = f"Of {len(speedups)} references timed against themselves on an H100, {sum(one < 1 for one in speedups)} have"
    assert text in " ".join((ROOT / "docs" / "ci.md").read_text().split())


@pages
def test_a_table_has_one_head(page):
    """A blank line in a table makes text of the rows after it."""
    for before, first, second in re.findall(r"(^.*\n)\n(\|.*\n)(.*\n)", page.read_text(), re.M):
        assert set(second) <= set("|-: \n"), (before, first)


def test_a_command_that_is_not_there_is_noticed():
    for words in (
        ["evaluate"],
        ["eval", "--solution-dir", "x"],
        ["check", "--solutions", "k", "--max-regression", "5"],
    ):
        with pytest.raises((AssertionError, click.UsageError)):
            parse(words)
