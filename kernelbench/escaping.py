"""Text from candidates on its way to what would interpret it: one function for each place.

Names, messages, logs and code come from the candidate. A terminal obeys control characters, a CI log lines that look
like commands, Markdown and HTML their marks, a spreadsheet formulas, a model instructions. Every module that writes to
one of these passes text through its function here, once, as the last step. Files that people print are fit for a
terminal too.
"""

from __future__ import annotations

import hashlib
import html as _html
import json
import os
import re
from typing import Any

from harness.result import printable

_MOST_IN_A_PICTURE = 80  # characters of a text; 128,000 took 30 s to draw (2 cores, 2026-11-26)
_DIGITS = 8  # of a digest
_CI_COMMAND = re.compile(r"^([^\S\n]*)::", re.MULTILINE)  # ::error ...
_CI_MARK = re.compile(r"##(?=\w*\[)")  # ##[error], ##vso[...]
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Beside the marks of Markdown those of people, issues, changes, labels, formulas, emoji and addresses, which a forge
# finds in any text.
_MARKS = re.compile(
    r"[&<>|`*~\\@#$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|\](?=[(\[:])|\[(?=\w+:)|[!%^](?=\w)"
    r"|(?<=www)\.|:(?=//)|:(?=[+\-\w]+:)|(?<=G[HL])-(?=\d)",
    re.IGNORECASE,
)
_COMMIT = re.compile(r"(?<![A-Za-z0-9_])(?=[0-9]*[a-f]|[0-9]{40})[0-9a-f]{7,64}(?![A-Za-z0-9_])", re.IGNORECASE)
_BEGINS = re.compile(r"[-+\[\s]|\d+[.)]")  # a block of its own, perhaps behind blanks
_APART = "&#8203;"  # no width: what a forge looks for in shown text begins with a mark and goes on at once
# A spreadsheet takes full-width forms too, and one that separates cells otherwise begins a cell behind these, which may
# stand between quotation marks.
_FORMULA = re.compile(r"((?:^|[;\t\n])[\s\"]*)(['=+\-@\uff1d\uff0b\uff0d\uff20]?)")  # takes each blank once


def terminal(text: str) -> str:
    """Escape text for a terminal or the log of a CI job: no control characters, no commands to the CI."""
    return _CI_MARK.sub(r"#\#", _CI_COMMAND.sub(r"\1\\::", printable(text)))


def json_text(data: Any, indent: int = 2) -> str:
    """JSON for a terminal: the same data, paths as text, and no command to a CI."""
    return _CI_MARK.sub(r"#\\u0023", json.dumps(data, indent=indent, default=str))


def json_line(data: Any) -> str:
    """JSON as ``json_text``, on one line."""
    return _CI_MARK.sub(r"#\\u0023", json.dumps(data, default=str))


def workflow_command(kind: str, properties: dict[str, str], message: str) -> str:
    """A command to GitHub Actions, whose properties and message are nothing but text."""
    given = ",".join(f"{key}={_percent(value, ':,')}" for key, value in properties.items() if value)
    return f"::{kind} {given}::{_percent(message)}"


def _percent(text: str, more: str = "") -> str:
    return "".join(f"%{ord(c):02X}" if c in "%\r\n#" + more else c for c in printable(text))


def markdown(text: str) -> str:
    """Escape text for the middle of a line or the cell of a table in Markdown."""
    line = terminal(" ".join(text.split("\n")))
    marked = _MARKS.sub(lambda found: f"&#{ord(found[0])};{_APART if found[0] in '@#$:&*~!%^[-' else ''}", line)
    return _COMMIT.sub(lambda found: _APART.join(re.findall(".{1,6}", found[0])), marked)


def markdown_lines(lines: list[str]) -> str:
    """Several lines where one may stand, as in an item of a list, and begin no list or box to tick there."""
    text = "<br>".join(map(markdown, lines))
    return _APART + text if _BEGINS.match(text) else text


def markdown_block(text: str) -> str:
    """Text of any length as a block of its own: between fences that it cannot close."""
    shown = terminal(text)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", shown))])
    return f"{fence}text\n{shown}\n{fence}"


def csv_cell(value: Any) -> Any:
    """Escape text for a spreadsheet: an apostrophe stands before what begins like a formula, or with one."""
    if not isinstance(value, str):
        return value
    return _FORMULA.sub(lambda found: f"{found[1]}'{found[2]}" if found[2] else found[0], terminal(value))


def xml(text: str) -> str:
    """Remove characters that XML does not have, and commands to the CI: its log may show the file.

    The writer of the element escapes the rest.
    """
    return _NOT_XML.sub("?", terminal(text))


def html(text: str) -> str:
    """Escape text for HTML, between tags or in an attribute."""
    return _html.escape(printable(text))


def picture(text: str) -> str:
    """Escape and cut text for matplotlib, which reads formulas between dollar signs, and draws letter by letter."""
    return printable(cut(text, _MOST_IN_A_PICTURE)).replace("$", r"\$")


def cut(text: str, most: int) -> str:
    """Return at most so many characters of a text; the last one shows that more are left out."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def cut_apart(text: str, most: int) -> str:
    """Return at most so many characters of a text; of a longer one its digest comes last, so that no two look alike."""
    if len(text) <= most:
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
    return f"{text[: most - _DIGITS - 1]}…{digest}"


def script_json(text: str) -> str:
    r"""JSON between tags of HTML: ``<``, ``>`` and ``&`` as \u003c and so on, so no end tag, comment or entity."""
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def prompt(parts: dict[str, str]) -> str:
    """Put parts under titles, between lines with a fresh mark, for a model that is to read and not to obey."""
    mark = f"---- {os.urandom(8).hex()} ----"
    return "\n\n".join(f"{title}:\n{mark}\n{text}\n{mark}" for title, text in parts.items())
