"""Which file of a candidate's folder a module that it imports is."""

from pathlib import Path

import pytest

from harness.worker import load


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Return a function that says where ``helper`` is found beside ``files``, of which some cannot be read."""

    def found(*files, unreadable=()):
        for name in files:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        readable = load._is_readable
        closed = {tmp_path / name for name in unreadable}
        monkeypatch.setattr(load, "_is_readable", lambda file: file not in closed and readable(file))
        spec = load._Beside(tmp_path).find_spec("helper")
        return spec and (Path(spec.origin).relative_to(tmp_path).as_posix() if spec.origin else "a folder")

    return found


@pytest.mark.parametrize("library", ["helper.so", "helper.abi3.so"])
def test_a_library_of_the_same_name_takes_no_module_from_its_owner(found, library):
    """An empty file beside a neighbour's module was enough: nothing was imported then."""
    assert found("helper.py", library, unreadable=[library]) == "helper.py"


def test_a_package_comes_before_a_module_and_what_cannot_be_read_does_not_count(found):
    assert found("helper.py", "helper/__init__.py") == "helper/__init__.py"
    assert found(unreadable=["helper/__init__.py"]) == "helper.py"
    assert found(unreadable=["helper/__init__.py", "helper.py"]) is None


def test_a_folder_without_an_init_is_found_where_a_module_in_it_can_be_read(found):
    assert found("helper/part.py") == "a folder"
    assert found(unreadable=["helper/part.py"]) is None
