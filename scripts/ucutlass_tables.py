"""Write the generated tables of docs/ucutlass.md: what works where, and the rules.

    .venv/bin/python scripts/ucutlass_tables.py

A test compares the guide with what this writes.
"""

from __future__ import annotations

import re
from pathlib import Path

from kernelbench.ucutlass.codegen.coverage import ROWS
from kernelbench.ucutlass.rules import RULES

GUIDE = Path(__file__).parent.parent / "docs" / "ucutlass.md"


def coverage() -> str:
    """The table of what is built for which architecture."""
    lines = ["| what | architectures | state | notes | programs of the gallery |", "| --- | --- | --- | --- | --- |"]
    for row in ROWS:
        programs = ", ".join(f"`{name}`" for name in row.programs)
        lines.append(f"| {row.what} | {row.archs} | {row.state} | {row.note} | {programs} |")
    return "\n".join(lines)


def rules() -> str:
    """The table of rules, by name."""
    lines = ["| rule | why |", "| --- | --- |"]
    lines += [f"| `{rule.name}` | {rule.why.replace('|', '/')} |" for _, rule in sorted(RULES.items())]
    return "\n".join(lines)


def filled(text: str) -> str:
    """The guide with its tables as they are now."""
    for name, table in (("coverage", coverage()), ("rules", rules())):
        begin = f"<!-- {name}: scripts/ucutlass_tables.py -->\n"
        text = re.sub(rf"{begin}.*?(?=<!-- end -->)", lambda _, new=begin + table + "\n": new, text, flags=re.S)
    return text


if __name__ == "__main__":
    GUIDE.write_text(filled(GUIDE.read_text()))
