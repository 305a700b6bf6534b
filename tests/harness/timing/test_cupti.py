"""CUPTI counts as there where it records something: seen with libraries that are pretended."""

import ctypes
from types import SimpleNamespace

import pytest
import torch

from harness.timing import cupti

HAS_IT = 39  # CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED


class Library:
    """A CUPTI that answers with codes of errors, 0 without, and records so many fills of a GPU."""

    def __init__(self, registers=0, enables=0, fills=1):
        self._registers, self._enables, self._fills = registers, enables, fills
        self.enabled = set()

    def cuptiActivityRegisterCallbacks(self, request, complete):
        self._request, self._complete = request, complete
        return self._registers

    def cuptiActivityEnable(self, kind):
        self.enabled.add(kind)
        return self._enables if kind == cupti._MEMSET else 0

    def cuptiActivityDisable(self, kind):
        self.enabled.discard(kind)
        return 0

    def cuptiActivityFlushAll(self, forced):
        if not self._fills:
            return
        buffer, size, most = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
        self._request(ctypes.pointer(buffer), ctypes.pointer(size), ctypes.pointer(most))
        self._left = self._fills
        self._complete(None, 0, buffer, size, size)

    def cuptiActivityGetNextRecord(self, buffer, valid, record):
        if not self._left:
            return 1
        self._left -= 1
        self._record = cupti._Head(kind=cupti._MEMSET, bytes=4, begin=10, end=20)
        ctypes.cast(record, ctypes.POINTER(ctypes.c_void_p))[0] = ctypes.addressof(self._record)
        return 0

    def cuptiFinalize(self):
        return 0


@pytest.fixture
def with_library(monkeypatch):
    """Put a library in the place of CUPTI; no other is found then."""

    def with_library(library):
        monkeypatch.setattr(cupti, "ctypes", SimpleNamespace(**vars(ctypes) | {"CDLL": lambda place: library}))
        for name, value in (("is_available", lambda: True), ("synchronize", list), ("_sleep", lambda cycles: None)):
            monkeypatch.setattr(torch.cuda, name, value)
        monkeypatch.setattr(torch.version, "cuda", "12.6")
        cupti._open.cache_clear()
        return library

    yield with_library
    cupti._open.cache_clear()


def test_a_library_that_records_is_available(with_library):
    library = with_library(Library(fills=2))
    assert cupti.available() and not library.enabled
    with cupti.recording() as activities:
        pass
    assert [(activity.name, activity.bytes, activity.ms) for activity in activities] == [("memset", 4, 1e-5)] * 2


@pytest.mark.parametrize("lacking", [Library(registers=HAS_IT), Library(enables=HAS_IT), Library(fills=0)])
def test_a_library_that_loads_and_cannot_record_is_not_available(with_library, lacking):
    """It was, and no candidate was evaluated where another profiler had CUPTI."""
    library = with_library(lacking)
    assert not cupti.available() and not library.enabled
