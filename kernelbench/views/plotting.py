"""Plotting with matplotlib (the ``report`` extra), and writing pictures."""

from __future__ import annotations

import io
from pathlib import Path

from kernelbench import working_directory
from kernelbench.run_files.log import write_named


class PictureError(Exception):
    """A picture that cannot be drawn, and what to do about it."""


def pyplot(what: str):
    """matplotlib's module of that name, without a screen; PictureError says that ``what`` needs it."""
    try:
        matplotlib = _matplotlib()
        matplotlib.rcdefaults()
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError as error:
        raise PictureError(f"{what} needs matplotlib: pip install 'kernelbench[report]'") from error
    return pyplot


def _matplotlib():
    with working_directory.left():
        import matplotlib
    return matplotlib


def save(figure, path: Path) -> None:
    """Write and close a figure; its format is that of the suffix of ``path``, or PNG. Raises PictureError."""
    path = path if path.suffix else path.with_name(f"{path.name}.png")
    picture = io.BytesIO()
    try:
        figure.savefig(picture, format=path.suffix.removeprefix("."))
        write_named(path, picture.getvalue())
    except (OSError, ValueError) as error:
        raise PictureError(f"cannot write {path}: {error}") from error
    finally:
        from matplotlib import pyplot as opened  # it is there, for there is a figure

        opened.close(figure)
