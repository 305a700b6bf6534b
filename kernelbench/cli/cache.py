"""`kb cache`"""

from __future__ import annotations

import click
from tabulate import tabulate

from harness.build.cache import Cache, CacheError, Statistics
from kernelbench.cli import UNFIT, fail


@click.group("cache", invoke_without_command=True)
@click.option("--clear", is_flag=True, help="Empty it, like `kb cache clear`.")
@click.pass_context
def command(context: click.Context, clear: bool) -> None:
    """Show the cache of builds, or empty it.

    The cache is the folder KERNELBENCH_CACHE, else kernelbench in the user's
    cache folder; it shrinks to KERNELBENCH_CACHE_GB (10), oldest use first.

    \b
    Examples:
      kb cache
      kb cache clear
    """
    if context.invoked_subcommand is None:
        _run(_clear if clear else _show)


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
    click.echo(tabulate(rows, tablefmt="plain", disable_numparse=True))


def _clear(cache: Cache) -> None:
    removed: Statistics = cache.clear()
    click.echo(f"removed {removed.entries:,} entries, {_gb(removed.size_bytes)}, from {removed.root}")


def _run(action) -> None:
    try:
        action(Cache())
    except CacheError as error:
        fail(error, UNFIT)


def _gb(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
