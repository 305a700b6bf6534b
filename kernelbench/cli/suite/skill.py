"""`kb skill`"""

from __future__ import annotations

from pathlib import Path

import click

import kernelbench
from kernelbench.cli import say

PAGE = Path(kernelbench.__file__).parent / "SKILL.md"


@click.command("skill")
def command() -> None:
    """Print the page that teaches a coding agent to write kernels: a SKILL.md.

    \b
    Examples:
      kb skill
      kb skill > .claude/skills/kernelbench/SKILL.md
    """
    say(PAGE.read_text(encoding="utf-8"), nl=False)
