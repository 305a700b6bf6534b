"""A report as Markdown with pictures beside it, and as one HTML page."""

from __future__ import annotations

import base64

from kernelbench import escaping
from kernelbench.experiment.report import Report, Table
from kernelbench.views import tables

_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}
th,td{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:left;white-space:nowrap}
img{max-width:100%}"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def markdown(report: Report, pictures: dict[str, str]) -> str:
    """``pictures`` are paths by name."""
    parts = [f"# {escaping.markdown(report.title)}"]
    for section in report.sections:
        parts.append(f"## {escaping.markdown(section.title)}")
        parts += [escaping.markdown(section.text)] if section.text else []
        parts += [tables.table(table.headers, table.rows, "markdown") for table in section.tables if table.rows]
        parts += [f"![{name}]({pictures[name]})" for name in section.pictures if name in pictures]
    return "\n\n".join(parts) + "\n"


def html(report: Report, pictures: dict[str, bytes]) -> str:
    """``pictures`` are SVG by name; they are in the page."""
    title = escaping.html(report.title)
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><style>{_STYLE}</style></head>',
        f"<body><h1>{title}</h1>",
    ]
    for section in report.sections:
        parts.append(f"<h2>{escaping.html(section.title)}</h2>")
        parts += [f"<p>{escaping.html(section.text)}</p>"] if section.text else []
        parts += [_table(table) for table in section.tables if table.rows]
        for name in section.pictures:
            if name in pictures:
                data = base64.b64encode(pictures[name]).decode()
                parts.append(f'<p><img alt="{escaping.html(name)}" src="data:image/svg+xml;base64,{data}"></p>')
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _table(table: Table) -> str:
    cells = lambda row, tag: "".join(f"<{tag}>{escaping.html(cell)}</{tag}>" for cell in row)  # noqa: E731
    rows = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in table.rows)
    return f"<table><tr>{cells(table.headers, 'th')}</tr>{rows}</table>"
