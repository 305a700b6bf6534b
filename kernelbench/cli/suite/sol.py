"""`kb sol`"""

from __future__ import annotations

from pathlib import Path

import click

from harness.problem.module import ProblemError
from kernelbench.cli import UNFIT, WRONG_USAGE, OutputFile, clock_option, fail, out_option, precision_option, say
from kernelbench.run_files.log import write_named


@click.command("sol")
@click.argument("selector")
@click.option("--device", help="Which GPU, as in h100-sxm, a100-sxm, l4; cuda for the one at hand. "
                               "Without it, the one at hand if it is known, else h100-sxm.")  # fmt: skip
@clock_option("the rated one, as nothing is observed here")
@click.option("--workload", help="Which sizes. Without it, the published ones.")
@precision_option
@click.option("--problem-dir", type=click.Path(path_type=Path), help="Another folder of problems.")
@click.option("--json", "as_json", is_flag=True, help="Print the reports as JSON.")
@click.option("--roofline", type=OutputFile(), metavar="FILE",
              help="Draw the roofline into a .png, .svg or .pdf file.")  # fmt: skip
@out_option("Write to a file instead of the terminal.")
def command(selector, device, clock_mhz, workload, precision, problem_dir, as_json, roofline, out) -> None:
    """Speed of light: how fast could a problem be on a GPU, and what can no honest kernel beat.

    One problem gives a report, several a table. It needs no GPU.

    \b
    Examples:
      kb sol 1/1 --device h100-sxm --clock mucutlass
      kb sol level1 --device a100-sxm --roofline level1.svg
    """
    from harness.device import DeviceError
    from harness.sol.hardware import UnknownDevice
    from kernelbench.views import sol_report
    from kernelbench.views.plotting import PictureError
    from kernelbench.views.roofline_plot import draw

    try:
        limits = sol_report.choose_limits(device)
        text, reports = sol_report.report(selector, limits, clock_mhz, workload, precision, problem_dir, as_json)
        if roofline:
            draw(reports, roofline)
        if out:
            write_named(out, text)
        else:
            say(text, nl=False)
    except (PictureError, DeviceError, OSError) as error:
        fail(error, UNFIT)
    except (ValueError, ProblemError, UnknownDevice) as error:
        fail(error, WRONG_USAGE)
