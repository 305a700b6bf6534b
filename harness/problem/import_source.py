"""Import a Python file by its text alone.

Python takes bytecode beside a file for it where size and time of change agree, or where the bytecode says that nobody
is to look. It may be of another text, as after an archive was unpacked, and of others. What runs here is the text
whose digest a record has.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


def import_source(path: Path, name: str, source: bytes) -> ModuleType:
    """Import ``source``, the content of ``path``, under a name of our choice. Exceptions of the import pass through."""
    spec = importlib.util.spec_from_file_location(name, path, loader=_OfText(name, path, source))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class _OfText(SourceFileLoader):
    def __init__(self, name: str, path: Path, source: bytes):
        super().__init__(name, str(path))
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._source, self.path)
