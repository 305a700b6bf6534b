"""Help of commands with many options: in groups, one line an option."""

from __future__ import annotations

import click

# Group -> its options, by the names of parameters. Where an option is in none, it is among the first.
GROUPS = {
    "Selection": ("problem", "selector", "problem_dir", "prebuilt", "workload", "held_out"),
    "Conditions": (
        "device", "precision", "baselines", "track", "timeout", "build_timeout", "memory", "cv_target", "clock_mhz",
        "jobs", "executor", "address",
    ),
    "Model": ("model", "base_url", "key_variable", "fields", "prices", "stream", "prompts"),
    "Limits of the run": ("attempts", "tokens", "usd", "seconds"),
    "Gate": (
        "require", "min_speedup", "prove_speedup", "max_regression", "against", "allow_unmapped", "allow_missing",
        "allow_removed", "arch",
    ),
    "Output": ("out", "resume", "as_json", "junit", "summary", "annotations", "picture"),
}  # fmt: skip
_GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}
_FIRST = "Options"


class GroupedCommand(click.Command):
    """A command whose help lists its options by what they are about."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group that has options."""
        rows: dict[str, list[tuple[str, str]]] = {_FIRST: []} | {group: [] for group in GROUPS}
        for parameter in self.get_params(context):
            if (row := parameter.get_help_record(context)) is not None:
                rows[_GROUP_OF.get(parameter.name, _FIRST)].append(row)
        for group, records in rows.items():
            if records:
                with formatter.section(group):
                    formatter.write_dl(records)
