"""`kb doctor`"""

from __future__ import annotations

import sys
from dataclasses import asdict

import click
from tabulate import tabulate

from kernelbench.cli import UNFIT, device_option, fail, json_option, say, say_json


@click.command("doctor")
@click.option("--ceilings", is_flag=True, help="Measure copy bandwidth and matrix products, beside the datasheet's.")
@device_option(purpose="What to measure: ")
@json_option
def command(ceilings: bool, device: str | None, as_json: bool) -> None:
    """Say what can run on this machine, and how to fix what cannot.

    \b
    Examples:
      kb doctor
      kb doctor --ceilings
    """
    from kernelbench.machine import doctor

    if device and not ceilings:
        raise click.UsageError("--device says what --ceilings measures")
    if ceilings:
        _ceilings(device, as_json)
        return
    findings = doctor.examine()
    able = doctor.abilities(findings)
    if as_json:
        say_json({"found": [asdict(f) for f in findings], "can_run": dict(able)})
    else:
        rows = [(f.what, f.found, f.advice) for f in findings]
        say(tabulate(rows, ("", "found", "what to do"), disable_numparse=True))
        say("\nCan run here:\n" + "\n".join(f"  {'yes' if can else 'no ':<4} {kind}" for kind, can in able))
    if not doctor.fit(findings):
        sys.exit(UNFIT)


def _ceilings(name: str | None, as_json: bool) -> None:
    from harness import device as devices
    from kernelbench.machine.peak_rates import measure

    try:
        device = devices.select(name)
    except devices.DeviceError as error:
        fail(error, UNFIT)
    described = devices.describe(device)
    if as_json:
        ceilings = [asdict(ceiling) for ceiling in measure(device)]
        say_json({"device": described, "ceilings": ceilings})
        return
    say(described["name"] + (" (a CPU: no GPU is measured)" if device.type == "cpu" else ""))
    rows = [
        (
            ceiling.what,
            f"{ceiling.measured:,.4g} {ceiling.unit}",
            f"{ceiling.datasheet:,.4g} {ceiling.unit}" if ceiling.datasheet else "not known",
            f"{ceiling.measured / ceiling.datasheet:.0%}" if ceiling.datasheet else "",
        )
        for ceiling in measure(device)
    ]
    say(tabulate(rows, ("", "measured", "datasheet", "share"), disable_numparse=True))
