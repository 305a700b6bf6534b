"""A worker's memory, as the judge reads it."""

import pytest

GIB = 1 << 30
SOURCE = """
import ctypes
kept = ctypes.create_string_buffer(b"kept here")
print(ctypes.addressof(kept))
class ModelNew: pass
"""
CLOSED = "import ctypes\nassert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0\n"  # PR_SET_DUMPABLE
REPLACED = "import os\nif os.fork() == 0: os.execv('/bin/sleep', ['sleep', '60'])\n"


@pytest.fixture
def holding(server, tmp_path):
    """A worker that has run ``source`` and the address that it printed."""

    def holding(source):
        path = tmp_path / "module.py"
        path.write_text(source)
        worker = server.fork({}, 2 * GIB, readable=[path])
        opened.append(worker)
        worker.request({"op": "import", "solution": str(path)}, 20)
        return worker, int(worker.output)

    opened = []
    yield holding
    for worker in opened:
        worker.close()


@pytest.mark.parametrize("source", [SOURCE, CLOSED + SOURCE, REPLACED + SOURCE], ids=["as it is", "closed", "forked"])
def test_it_is_read_where_the_worker_says(holding, source):
    worker, address = holding(source)
    assert worker.memory.read(address, 9) == b"kept here"


def test_memory_that_is_not_there_is_an_error(holding):
    worker, _ = holding(SOURCE)
    with pytest.raises(OSError):
        worker.memory.read(4096, 8)


def test_of_a_worker_that_has_ended_nothing_is_read(holding):
    worker, address = holding(SOURCE)
    worker.end()
    with pytest.raises(OSError):
        worker.memory.read(address, 9)
