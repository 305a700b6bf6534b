"""Return whether a solution may do without kernels of its own, as an option. It imports little."""

from __future__ import annotations

from collections.abc import Callable

import click

from harness.integrity.library_only import TRACKS


def _earlier_track(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """``--track``, which scripts of earlier versions give: ``open`` is --allow-library."""
    if value is not None:
        context.params["track"] = value


def _track(context: click.Context, parameter: click.Parameter, value: bool | None) -> str | None:
    return context.params.get("track") if value is None else TRACKS[value]


def library_option(command: Callable) -> Callable:
    """Decorator: whether a solution may do without kernels of its own, as ``track``."""
    command = click.option(
        "--allow-library/--own-kernels", "track", default=None, callback=_track,
        help="Accept library calls alone, or not.",
    )(command)  # fmt: skip
    return click.option(
        "--track", "earlier_track", type=click.Choice(TRACKS), hidden=True, is_eager=True, expose_value=False,
        callback=_earlier_track,
    )(command)  # fmt: skip
