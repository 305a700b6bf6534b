"""Random directories of solutions, sources and texts: does anything but the candidate fail, or a sink obey?

    python scripts/fuzz_inputs.py --trees 300 --sources 3000 --texts 10000 --seed 1

A tree has files, folders, links, pipes and sparse files with names and comments made wrong in one of several ways; it
must be discovered, or refused with a reason. A source is made of pieces of Python, C++ and noise; it must be read
within the limits, with findings that a record can hold. A text goes through every sink, whose output must show it and
nothing else. Exit status 1 and the input where anything else happens.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from harness.integrity.static import findings
from harness.limits import MAX_FINDING_CHARACTERS, MAX_FINDINGS, MAX_SAMPLE
from harness.problem.module import ProblemId
from harness.result import CandidateFailure, Status
from harness.solution.discover import SolutionError, discover, read_solution
from harness.solution.visible_files import own_texts
from kernelbench import escaping
from kernelbench.views import tables

_PIECES = [
    "\x00", "\x07", "\x1b[2J", "\x1b]0;t\x07", "\x9b31m", "\r", "\n", "\t", "\x0b", "\u2028", "\u202e", "\ud800",
    "\udcff", "\ufffe", "::", "::error::", "\n::add-mask::", "##[", "##vso[", "`", "```", "~~~", "|", "<b>",
    "</script>", "<!--", "]]>", "&amp;", "](x)", "*", "_", "#", "=", "+", "-", "@", "=1+1", "'", '"', ",", ";",
    "\\", "$", "%0A", "----", "http://x", "www.x", " ", "a", "kernel", "1", "ü", "漢", "é",
]  # fmt: skip
_NAMES = ["1_19", "1_19_s2", "2_3_name", "level_1_problem_2_sample_3_kernel", "x", "__init__", "1_", "_s1", "19_relu"]
_NUMBERS = ["1", "0", "-1", "²", "٣", "9" * 30, "9" * 5000, "1e9", "", "1/19", "0x1", " 1", "999999999", "1000000000"]
_COMMENTS = ["#", "//", "/*", "*", " # ", "##", "#!", ""]
_SUFFIXES = [".py", ".cu", ".cpp", ".so", ".h", ".txt", ""]
_CODE = [
    "import torch\n", "from os import *\n", "import helper\n", "x = 1\n", "a\n", "def f(x):\n", "    return x\n",
    "(", ")", "[", "]", "{", "}", "'", '"', "\"\"\"", "f'{", "\\\n", "lambda: ",
    "class ModelNew(torch.nn.Module):\n", "load_inline(", "cpp_sources=", "__global__ ", "__launch_bounds__(",
    "void k(", "<<<1, 1>>>", "#include <", '#include "', "1_19.h\"\n", "#define A ", "/*", "*/", "//", "R\"(",
    ")\"", "R\"x(", "at::", "relu(", "os._exit(0)\n", "\x00", "\ufeff", "ü", "\t", "\n", " " * 50, ";", "0x", "1e",
    "'\\''",
]  # fmt: skip
_COMMAND = re.compile(r"^[^\S\n]*::|##\w*\[", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--sources", type=int, default=3_000)
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    endings = fuzz_trees(options.trees, options.seed)
    endings += fuzz_sources(options.sources, options.seed)
    endings += fuzz_texts(options.texts, options.seed)
    for what, count in endings.most_common():
        print(f"{count:8d}  {what}")


def fuzz_trees(count: int, seed: int) -> Counter:
    """Return how the discovery of so many directories ended; raises AssertionError where it was no answer."""
    chance, endings = random.Random(seed), Counter()
    for number in range(count):
        with tempfile.TemporaryDirectory() as folder:
            grow(Path(folder), chance)
            endings[f"tree: {_checked(lambda f=folder: _discovered(Path(f)), f'tree {number} of seed {seed}')}"] += 1
    return endings


def grow(root: Path, chance: random.Random) -> None:
    """Fill a directory with what nobody would."""
    folders = [os.fsencode(root)]
    for _ in range(chance.randint(0, 15)):
        path = os.path.join(chance.choice(folders), _file_name(chance))
        if os.path.lexists(path):
            continue
        with contextlib.suppress(OSError, ValueError):  # what no file system takes
            match chance.choice(["file"] * 6 + ["folder", "folder", "link", "pipe", "sparse", "closed"]):
                case "folder":
                    os.mkdir(path)
                    folders.append(path)
                case "link":
                    beside = os.path.join(os.path.dirname(path), b"1_19.py")
                    targets = [*folders, path, beside, b"/dev/zero", b"/", b"..", b"/no/where"]
                    os.symlink(chance.choice(targets), path)
                case "pipe":
                    os.mkfifo(path)
                case kind:
                    with open(path, "wb") as file:
                        file.write(_source(chance))
                        if kind == "sparse":
                            file.truncate(chance.choice([1 << 10, 1 << 20, (4 << 20) + 1, 1 << 40]))
                    if kind == "closed":
                        os.chmod(path, 0)


def _file_name(chance: random.Random) -> bytes:
    noise = "".join(chance.choices(_PIECES, k=chance.randint(0, 4))) if chance.random() < 0.3 else ""
    name = chance.choice([*_NAMES, "level1", "level" + chance.choice(_NUMBERS)]) + noise + chance.choice(_SUFFIXES)
    encoded = name.encode(errors="surrogatepass").replace(b"/", b"").replace(b"\0", b"")
    return encoded[: chance.choice([20, 250, 300])] or b"x"


def _source(chance: random.Random) -> bytes:
    """A source that begins with a comment of ours."""
    words = [f"{key}={chance.choice(_NUMBERS)}" for key in ("problem", "sample") if chance.random() < 0.6]
    words += [f"device={chance.choice(['cpu', 'any', *_PIECES])}"] if chance.random() < 0.3 else []
    words += ["problem=1/19"] if chance.random() < 0.3 else []
    blanks = " " * chance.choice([0, 1, 1, 40_000])
    head = f"{chance.choice(_COMMENTS)}{blanks}kb:{blanks}{' '.join(words)}{blanks}\n" if chance.random() < 0.7 else ""
    code = "".join(chance.choices([*_CODE, *_PIECES], k=chance.randint(0, 60))) * chance.choice([1, 1, 1, 1, 50])
    return (head + code).encode(errors="surrogatepass")


def _discovered(root: Path) -> str:
    try:
        found = discover(root, prebuilt=True)
    except SolutionError as error:
        assert str(error).strip()
        return "refused"
    for solution in found.solutions:
        assert 0 <= solution.sample <= MAX_SAMPLE and solution.name.isprintable()
    assert all(isinstance(reason, str) and reason for _, reason in found.unmapped)
    return f"{min(len(found.solutions), 3)} solutions or more" if found.solutions else "no solution"


def fuzz_sources(count: int, seed: int) -> Counter:
    """Return how reading so many sources ended; raises AssertionError where a record could not hold it."""
    chance, endings = random.Random(seed), Counter()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(count):
            path = Path(folder, f"1_19{chance.choice(['.py', '.py', '.cu', '.cpp'])}")
            path.write_bytes(_source(chance))
            endings[f"source: {_checked(lambda p=path: _read(p), path.read_bytes())}"] += 1
            path.unlink()
    return endings


def _read(path: Path) -> str:
    solution = read_solution(path, problem=ProblemId(1, 19), settings=False)
    found = findings(solution)
    own_texts(solution)
    assert len(found) <= MAX_FINDINGS and all(len(finding.code) <= MAX_FINDING_CHARACTERS for finding in found)
    json.dumps([finding.to_json() for finding in found])
    if any(finding.rule == "unreadable" for finding in found):
        return "unreadable"
    return "findings" if found else "no findings"


class _Tags(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.found: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append(tag)

    handle_comment = handle_endtag = handle_decl = handle_pi = lambda self, text: self.found.append(text)


def fuzz_texts(count: int, seed: int) -> Counter:
    """Return how so many texts went through all sinks; raises AssertionError where one of them obeyed."""
    chance, endings = random.Random(seed), Counter()
    for _ in range(count):
        text = "".join(chance.choices(_PIECES, k=chance.randint(0, 30)))
        endings[f"text: {_checked(lambda t=text: _sunk(t), text)}"] += 1
    return endings


def _sunk(text: str) -> str:
    failure = CandidateFailure(Status.RUNTIME_ERROR, text, text)
    assert failure.message
    for escape in (escaping.terminal, escaping.markdown, escaping.markdown_block, lambda t: escaping.json_text([t])):
        shown = escape(text)
        assert all(c.isprintable() or c in "\n\t" for c in shown) and not _COMMAND.search(shown)
    assert json.loads(escaping.json_text([text])) == json.loads(json.dumps([text]))
    line = escaping.markdown(text)
    assert not re.search(r"[\n<>`|*~]|\]\(|www\.|http:", line)
    fence, *body, end = escaping.markdown_block(text).split("\n")
    assert not any(row.lstrip().startswith(end) for row in body) and fence == f"{end}text"
    table = tables.table(("a", "b"), [(text, text), ("c", "d")], "markdown").splitlines()
    assert len({row.count("|") for row in table}) == 1
    cell = str(escaping.csv_cell(text))
    assert not cell.lstrip().startswith(("=", "+", "-", "@"))
    root = ElementTree.Element("a", b=escaping.xml(text))
    root.text = escaping.xml(text)
    ElementTree.fromstring(ElementTree.tostring(root))
    assert _Tags(escaping.html(text)).found == []
    assert not re.search("[<>&]", escaping.script_json(json.dumps(text)))
    command = escaping.workflow_command("error", {"file": text, "title": text}, text)
    assert "\n" not in command and not _COMMAND.search(command[2:])
    assert command.split("::")[1].startswith("error ")
    asked = escaping.prompt({"title": text})
    (mark,) = {row for row in (asked.split("\n")[1], asked.split("\n")[-1])}
    assert asked.split("\n").count(mark) == 2 and asked.encode(errors="surrogatepass")
    escaping.picture(text).encode()
    return "shown"


def _checked(action: Callable[[], str], given: object) -> str:
    try:
        return action()
    except Exception:
        traceback.print_exc()
        print(f"given: {ascii(given)[:4000]}", file=sys.stderr)
        raise AssertionError("an input became more than a reason") from None


if __name__ == "__main__":
    main()
