"""The page that `kb skill` prints: its commands exist, and it has the head that agents look for."""

import re
import shlex

from click.testing import CliRunner

from kernelbench.cli import main
from kernelbench.cli.suite.skill import PAGE


def test_it_prints_the_page_as_it_is():
    done = CliRunner().invoke(main, ["skill"])
    assert done.exit_code == 0 and done.output == PAGE.read_text()


def test_the_page_begins_with_name_and_description():
    head = re.match(r"---\nname: ([a-z-]+)\ndescription: (.+)\n---\n", PAGE.read_text())
    assert head and head[1] == "kernelbench" and 20 < len(head[2]) < 1024


def test_its_commands_exist_with_their_options():
    lines = re.findall(r"^kb [^#\n]+", PAGE.read_text(), re.M)
    assert len(lines) >= 5
    for line in lines:
        _, name, *arguments = shlex.split(line)
        command = main.get_command(None, name)
        while hasattr(command, "get_command"):
            command = command.get_command(None, arguments.pop(0))
        command.make_context(name, arguments)
