"""A regrade as one HTML file without scripts: the sections of the document, and its Fast-p curves as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kernelbench import escaping
from kernelbench.regrade.document import Section

_WIDTH, _HEIGHT, _MARGIN = 640, 320, 40  # px
_FIRST, _LAST = 0.25, 32.0  # speedups at the ends of the logarithmic axis
_COLOURS = {"claimed": "#b3261e", "measured": "#5f6368", "filtered": "#1a73e8", "speed of light": "#7b1fa2"}
_STYLE = (
    "body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1100px;padding:0 1rem}"
    "table{border-collapse:collapse;margin:.5rem 0 2rem}th,td{padding:.2rem .6rem;text-align:left;"
    "border-bottom:1px solid #ddd}td{font-variant-numeric:tabular-nums}svg{max-width:100%}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(title: str, parts: Sequence[Section], curves: dict[str, list[tuple[float, float]]]) -> str:
    """Return the page; every text is escaped."""
    body = [f"<h1>{escaping.html(title)}</h1>", picture(curves)]
    for part in parts:
        body += [f"<h2>{escaping.html(part.title)}</h2>", f"<p>{escaping.html(part.note)}</p>" if part.note else ""]
        body.append(_table(part))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escaping.html(title)}</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(filter(None, body))
        + "\n</body></html>\n"
    )


def picture(curves: dict[str, list[tuple[float, float]]]) -> str:
    """Return the Fast-p curves as SVG: share of problems at r or beyond, r on a logarithmic axis."""
    marks = "".join(
        f'<line x1="{_x(r):.1f}" x2="{_x(r):.1f}" y1="{_y(0):.1f}" y2="{_y(1):.1f}" stroke="#eee"/>'
        f'<text x="{_x(r):.1f}" y="{_y(0) + 16:.1f}" text-anchor="middle">{r:g}x</text>'
        for r in (0.25, 0.5, 1, 2, 4, 8, 16, 32)
    )
    shares = "".join(
        f'<text x="{_MARGIN - 6}" y="{_y(share):.1f}" text-anchor="end">{share:g}</text>' for share in (0, 0.5, 1)
    )
    lines = "".join(_line(name, points, place) for place, (name, points) in enumerate(curves.items()))
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" font-size="11">'
        f"<title>Fast-p curves</title>{marks}{shares}{lines}</svg>"
    )


def _line(name: str, points: list[tuple[float, float]], place: int) -> str:
    """A falling staircase: the share of one point holds up to the next."""
    colour = _COLOURS.get(name, "#000")
    path: list[tuple[float, float]] = []
    for (r, share), (end, _) in zip(points, [*points[1:], (_LAST, 0.0)]):
        path += [(min(max(at, _FIRST), _LAST), share) for at in (r, end)]
    shape = " ".join(f"{_x(r):.1f},{_y(share):.1f}" for r, share in path)
    at = _MARGIN + 14 * (place + 1)
    return (
        f'<polyline points="{shape}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        f'<text x="{_WIDTH - _MARGIN}" y="{at}" text-anchor="end" fill="{colour}">{escaping.html(name)}</text>'
    )


def _table(part: Section) -> str:
    head = "".join(f'<th scope="col">{escaping.html(header)}</th>' for header in part.headers)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escaping.html(str(cell))}</td>" for cell in row) + "</tr>\n" for row in part.cells
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>"


def _x(r: float) -> float:
    return _MARGIN + (_WIDTH - 2 * _MARGIN) * math.log(r / _FIRST) / math.log(_LAST / _FIRST)


def _y(share: float) -> float:
    return _HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * share


def title_of(names: Sequence[str], data: dict[str, Any]) -> str:
    """Return the title of a regrade of these runs."""
    return f"Claimed against measured: {', '.join(names)} ({data['kernels']} kernels)"
