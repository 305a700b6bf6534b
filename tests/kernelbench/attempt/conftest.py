"""A private folder for the warm servers of a test."""

import time

import pytest

from kernelbench.attempt import warm_client


@pytest.fixture
def runtime(tmp_path_factory, monkeypatch):
    """The folder that warm servers of this test are found in; they end with it."""
    folder = tmp_path_factory.mktemp("run", numbered=True)
    folder.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder / "kernelbench"
    warm_client.stop()
    wait_until_gone(folder / "kernelbench")


def wait_until_gone(folder, within_s=60):
    """Wait until no server has a socket in the folder."""
    end = time.monotonic() + within_s
    while list(folder.glob("*.sock")):
        assert time.monotonic() < end, "the server did not end"
        time.sleep(0.05)
