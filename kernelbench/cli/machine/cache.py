"""`kb cache`"""

from __future__ import annotations

import dataclasses

import click
from tabulate import tabulate

from harness.compile.cache import Cache, CacheError, Statistics
from kernelbench.cli import UNFIT, fail, json_option, say, say_json


@click.group("cache", invoke_without_command=True)
@click.option("--clear", is_flag=True, help="Empty it, like `kb cache clear`.")
@json_option
@click.pass_context
def command(context: click.Context, clear: bool, as_json: bool) -> None:
    """Show the cache of builds, or empty it.

    The cache is the folder KERNELBENCH_CACHE, else kernelbench in the user's
    cache folder; it shrinks to KERNELBENCH_CACHE_GB (10), oldest use first.

    \b
    Examples:
      kb cache
      kb cache clear
    """
    if context.invoked_subcommand is None:
        _run(_clear if clear else _print if as_json else _show)


@command.command("clear")
def clear_() -> None:
    """Remove every build from the cache."""
    _run(_clear)


def _show(cache: Cache) -> None:
    found = cache.statistics()
    rows = [
        ("folder", found.root),
        ("entries", f"{found.entries:,}"),
        ("size", f"{_gb(found.size_bytes)} of {_gb(found.limit_bytes)}"),
        ("builds saved by them", f"{found.uses:,}"),
    ]
    say(tabulate(rows, tablefmt="plain", disable_numparse=True))


def _print(cache: Cache) -> None:
    say_json(dataclasses.asdict(cache.statistics()))


def _clear(cache: Cache) -> None:
    removed: Statistics = cache.clear()
    say(f"removed {removed.entries:,} entries, {_gb(removed.size_bytes)}, from {removed.root}")


def _run(action) -> None:
    try:
        action(Cache())
    except CacheError as error:
        fail(error, UNFIT)


def _gb(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
