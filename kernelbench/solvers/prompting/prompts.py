"""Prompts are files, ``kernelbench/prompts/*.md``: text with ``$names`` that are filled in here.

A file of the same name in the folder that ``kb solve --prompts`` names takes the place of ours.
"""

from __future__ import annotations

import hashlib
import string
from pathlib import Path

from harness.solution.includes import read_bytes

FOLDER = Path(__file__).resolve().parents[2] / "prompts"
FEW_SHOT = ("fused_gelu", "tiled_matmul", "flash_attention")


class PromptError(Exception):
    """A prompt that cannot be filled in: which file, and what is wrong."""


class Prompts:
    def __init__(self, folder: Path | None = None):
        self._folders = [folder.resolve(), FOLDER] if folder else [FOLDER]

    def text(self, name: str) -> str:
        """A file as it is, by its path below the folder.

        No link in a folder that is not ours is followed: it may be of others, and what is read is sent to models.
        """
        for folder in self._folders:
            try:
                return read_bytes(folder / name, in_place=folder != FOLDER).decode()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise PromptError(f"the prompt {folder / name} cannot be read: {error.strerror}") from None
            except UnicodeDecodeError:
                raise PromptError(f"the prompt {folder / name} is no text in UTF-8") from None
        raise PromptError(f"there is no prompt {name} in {' or '.join(map(str, self._folders))}")

    @staticmethod
    def digest(folder: Path) -> str:
        """Return the digest of the texts below a folder that may take the place of ours, or be a solver's own."""
        digest, folder = hashlib.sha256(), folder.resolve()
        for path in sorted({*folder.rglob("*.md"), *folder.glob("examples/*/*")}):
            try:
                text = hashlib.sha256(read_bytes(path, in_place=True)).hexdigest()
            except OSError:  # nor can a solver have it
                continue
            digest.update(f"{path.relative_to(folder)}\0{text}\n".encode(errors="surrogateescape"))
        return digest.hexdigest()

    def render(self, name: str, **values: object) -> str:
        """``name.md``, filled in and without the blank lines at its ends."""
        try:
            return string.Template(self.text(f"{name}.md")).substitute(values).strip()
        except (KeyError, ValueError) as error:
            raise PromptError(
                f"{name}.md cannot be filled in: {error}. It may use {', '.join('$' + key for key in values)}; "
                "write $$ for a dollar sign"
            ) from None

    def example(self, name: str, kind: str = "solution") -> str:
        """``example.md`` with one of the pairs below ``examples/``."""
        folder = f"examples/{name}"
        return self.render(
            "example",
            reference=self.text(f"{folder}/reference.py").strip(),
            solution=self.text(f"{folder}/{kind}.py").strip(),
        )
