"""`kb doctor`"""

from __future__ import annotations

import sys

import click
from tabulate import tabulate

from kernelbench.cli import UNFIT


@click.command("doctor")
def command() -> None:
    """Say what can run on this machine, and how to fix what cannot.

    \b
    Example:
      kb doctor
    """
    from kernelbench import doctor  # imports torch

    findings = doctor.examine()
    rows = [(f.what, f.found, f.advice) for f in findings]
    click.echo(tabulate(rows, ("", "found", "what to do"), disable_numparse=True))
    click.echo("\nCan run here:")
    for kind, able in doctor.abilities(findings):
        click.echo(f"  {'yes' if able else 'no ':<4} {kind}")
    if not doctor.fit(findings):
        sys.exit(UNFIT)
