"""`kb doctor`"""

from __future__ import annotations

import sys

import click
from tabulate import tabulate

from kernelbench.cli import UNFIT, fail


@click.command("doctor")
@click.option("--ceilings", is_flag=True, help="Measure copy bandwidth and matrix products, beside the datasheet's.")
@click.option("--device", help="What to measure: cpu, cuda or cuda:INDEX. Without it, the GPU if there is one.")
def command(ceilings: bool, device: str | None) -> None:
    """Say what can run on this machine, and how to fix what cannot.

    \b
    Examples:
      kb doctor
      kb doctor --ceilings
    """
    from kernelbench import doctor  # imports torch

    if device and not ceilings:
        raise click.UsageError("--device says what --ceilings measures")
    if ceilings:
        _ceilings(device)
        return
    findings = doctor.examine()
    rows = [(f.what, f.found, f.advice) for f in findings]
    click.echo(tabulate(rows, ("", "found", "what to do"), disable_numparse=True))
    click.echo("\nCan run here:")
    for kind, able in doctor.abilities(findings):
        click.echo(f"  {'yes' if able else 'no ':<4} {kind}")
    if not doctor.fit(findings):
        sys.exit(UNFIT)


def _ceilings(name: str | None) -> None:
    from harness import device as devices
    from kernelbench.ceilings import measure

    try:
        device = devices.select(name)
    except devices.DeviceError as error:
        fail(error, UNFIT)
    described = devices.describe(device)
    click.echo(described["name"] + (" (a CPU: no GPU is measured)" if device.type == "cpu" else ""))
    rows = [
        (
            ceiling.what,
            f"{ceiling.measured:,.4g} {ceiling.unit}",
            f"{ceiling.datasheet:,.4g} {ceiling.unit}" if ceiling.datasheet else "not known",
            f"{ceiling.measured / ceiling.datasheet:.0%}" if ceiling.datasheet else "",
        )
        for ceiling in measure(device)
    ]
    click.echo(tabulate(rows, ("", "measured", "datasheet", "share"), disable_numparse=True))
