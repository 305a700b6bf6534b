"""The page that teaches the language: its programs are valid, and it names every word."""

import re

import pytest

from kernelbench.solvers.prompting.prompts import Prompts
from kernelbench.ucutlass import check
from kernelbench.ucutlass.language import vocabulary

PAGE = Prompts().render("ucutlass")
PROGRAMS = re.findall(r"```\n(.*?)```", PAGE, re.S)


@pytest.mark.parametrize("source", PROGRAMS)
def test_every_program_of_the_page_is_valid(source):
    assert check(source).bindings


def test_the_page_names_every_word_but_aliases_and_refused_architectures():
    words = {*vocabulary.OPERATIONS, *vocabulary.CONFIGURATIONS, *vocabulary.EPILOGUES, "transpose", "pipeline", "bind"}
    for form in [*vocabulary.CONFIGURATIONS.values(), vocabulary.CONV_LAYOUT]:
        for parameter in form.parameters:
            if isinstance(parameter.values, dict):
                words |= {str(value) for value in parameter.values.values() if not isinstance(value, bool)}
    words -= {"sm_70", "sm_90", "sm_100", "int16", "uint16", "uint32"}
    missing = {word for word in words if not re.search(rf"\b{word}\b", PAGE)}
    assert not missing


def test_it_is_one_page():
    assert len(PAGE.splitlines()) < 90 and len(PAGE) < 6500
