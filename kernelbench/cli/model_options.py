"""Options of commands that ask a model, and the endpoint that they name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from harness.json_text import parse_json
from kernelbench.endpoint import Endpoint, checked_prices


def read_pairs(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE, several times: callback of an option."""
    pairs = {}
    for value in values:
        name, separator, text = value.partition("=")
        if not separator:
            raise click.BadParameter(f"'{value}' is not NAME=VALUE")
        pairs[name] = text
    return pairs


def _prices(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[float, float] | None:
    if value is None:
        return None
    try:
        return checked_prices([float(price) for price in value.split(",")])
    except ValueError:
        raise click.BadParameter("give two numbers from 0, as in 0.5,1.5") from None


def model_options(required: bool = False) -> Callable:
    """Options of a command whose ``endpoint_of(**more)`` then gives the Endpoint, or None without ``--model``."""
    options = [
        click.option("--model", required=required, help="Name of the model at the endpoint."),
        click.option("--base-url", metavar="URL",
                     help="Endpoint of OpenAI's protocol. Else $OPENAI_BASE_URL."),
        click.option("--key-variable", default="OPENAI_API_KEY", show_default=True,
                     metavar="NAME", help="Variable with the key."),
        click.option("--model-field", "fields", multiple=True, callback=read_pairs, metavar="NAME=JSON",
                     help="Field of every request, as temperature=0.7."),
        click.option("--price", "prices", callback=_prices, metavar="IN,OUT",
                     help="USD per million tokens of prompt and answer."),
        click.option("--stream", is_flag=True, help="Stream answers: long ones may run into time limits."),
    ]  # fmt: skip

    def decorate(command: Callable) -> Callable:
        @functools.wraps(command)
        def with_endpoint(*, model, base_url, key_variable, fields, prices, stream, **rest):
            def endpoint_of(**more: Any) -> Endpoint | None:
                if model is None:
                    return None
                known = {"key_variable": key_variable, "fields": _json_values(fields), "prices": prices}
                return Endpoint(model, base_url, stream=stream, **known, **more)

            return command(endpoint_of=endpoint_of, **rest)

        for option in reversed(options):
            with_endpoint = option(with_endpoint)
        return with_endpoint

    return decorate


def _json_values(fields: dict[str, str]) -> dict[str, Any]:
    """Values that are no JSON are strings: effort=low needs no quotes."""
    values = {}
    for name, text in fields.items():
        try:
            values[name] = parse_json(text)
        except ValueError:
            values[name] = text
    return values
