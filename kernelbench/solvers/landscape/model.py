"""A simulated author behind the interface of ``kernelbench.endpoint.Endpoint``: prompts in, answers out."""

from __future__ import annotations

import hashlib
import json
import math
import random
from typing import Any

from kernelbench.completion import Completion
from kernelbench.endpoint import About
from kernelbench.solvers.landscape import parameters as p
from kernelbench.solvers.landscape import reading, terrain
from kernelbench.solvers.landscape.author import Mind
from kernelbench.solvers.landscape.forms import answer_of
from kernelbench.solvers.model.answers import NoCode


class LandscapeModel:
    """One author in the landscape of ``seed``.

    An answer depends on the conversation, the fields of the request, and the number of the call: a run
    that is resumed gets the same answers, and another ``repeat`` others. ``insight`` and ``error`` are
    those of ``author.Mind``.
    """

    base_url = None

    def __init__(
        self, author: str = "mini", seed: int = 0, insight: float = 1.0, repeat: int = 0, error: float = p.SD_ERROR
    ):
        if author not in p.AUTHORS:
            raise ValueError(f"there is no author {author!r} in the landscape; use one of {', '.join(p.AUTHORS)}")
        self.author, self.seed, self.insight, self.repeat = p.AUTHORS[author], seed, insight, repeat
        self.error = error
        self.fields: dict[str, Any] = {}
        self.model = f"landscape-{author}"

    def sampling(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a request, as ``Endpoint.sampling`` does."""
        return {name: value for name, value in {**asked, **self.fields}.items() if value is not None}

    def complete(self, messages: list[dict[str, Any]], sampling: dict[str, Any], about: About) -> Completion:
        """Return the author's answer."""
        sent = json.dumps([messages, sampling], sort_keys=True)
        digest = hashlib.sha256(sent.encode()).hexdigest()
        rng = random.Random(f"answer {self.model} {self.seed} {self.repeat} {about.problem} {about.number} {digest}")
        mind = Mind(self.author, terrain.problem(self.seed, about.problem), self.seed, self.insight, self.error)
        text, usual = answer_of(mind, messages, reading.read(messages), about.tags.get("phase"), rng)
        written = round(usual * math.exp(rng.gauss(-0.08, 0.4)))  # lognormal with mean ``usual``
        read = sum(len(message["content"]) for message in messages) // p.CHARACTERS_A_TOKEN
        return Completion(text, "stop", read, written, 0.0, 1)

    def cost_usd(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """Return what an answer costs: all tokens at the price of input, as the paper counts them."""
        if None in (prompt_tokens, completion_tokens):
            return None
        return (prompt_tokens + completion_tokens) * self.author.usd_per_million / 1e6

    @staticmethod
    def extract(text: str, kind: str = "py", finished: bool = True) -> str:
        """Return the code in an answer, as ``answers.extract`` does; ours needs no other process to parse it."""
        _, _, after = text.partition("```python\n")
        code, fence, _ = after.partition("```")
        if not fence:
            raise NoCode("the answer holds no code")
        return code

    def close(self) -> None:
        """Close nothing."""
