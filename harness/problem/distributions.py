"""Inputs beyond the published draw.

A problem's published inputs are not its function's domain. Uniform on [0, 1) hides a
missing ReLU; samples that look alike hide that one was answered for another. A candidate
is therefore checked on each of the ``DRAWS`` that the problem's ``DOMAIN`` admits.

Judge and worker both call these functions, under equal seeds.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable

import torch
from torch import Tensor

from harness.problem.module import Problem, ProblemError
from harness.tensors.dtypes import is_scaled
from harness.tensors.strides import is_dense


def _mixed(x: Tensor, decades: float = 3.0) -> Tensor:
    """Every sample of another size and another offset, so that none passes for another."""
    rows = (x.shape[0], *[1] * (x.ndim - 1)) if x.ndim > 1 else ()
    size = 10 ** (decades * (torch.rand(rows, device=x.device) - 0.5))
    offset = torch.randn(rows, device=x.device)
    return x.normal_().add_(offset).mul_(size)


def _sized(x: Tensor) -> Tensor:
    return x.normal_().mul_(10 ** (1.5 * (torch.rand((), device=x.device) - 0.5)))


def _sharp(x: Tensor) -> Tensor:
    """Logits of one size for which a few decide the sum of their exponentials: of less spread ones a part would do."""
    return x.normal_().mul_(2.2 + torch.rand((), device=x.device))


# How a real tensor is drawn anew: in its place, because published inputs fill half of a GPU.
DRAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "published": lambda x: x,
    "signed": lambda x: x.normal_(),
    "shifted": lambda x: x.normal_().add_(3),
    "small": lambda x: x.normal_().mul_(0.01),
    "large": lambda x: x.normal_().mul_(30),
    "integers": lambda x: x.random_(-4, 5),
    "mixed": _mixed,
}


def _ragged(x: Tensor) -> Tensor:
    """Rows of different lengths: behind a random place each row is zero, as padded sequences are."""
    x.normal_()
    if x.ndim:
        lengths = torch.randint(1, x.shape[-1] + 1, (*x.shape[:-1], 1), device=x.device) if x.numel() else 0
        x.masked_fill_(torch.arange(x.shape[-1], device=x.device) >= lengths, 0)
    return x


def _constant_rows(x: Tensor) -> Tensor:
    """Every second row, by lot, has one value: the rest keeps the scale by which errors are judged."""
    x.normal_()
    if x.ndim < 2:
        return x
    rows = (*x.shape[:-1], 1)
    values, chosen = torch.randn(rows, device=x.device).to(x.dtype), torch.rand(rows, device=x.device) < 0.5
    return x.mul_(~chosen).add_(values * chosen)  # in its place: inputs may fill half of a GPU


# Structure of inputs that held-out workloads have; no candidate is checked on them otherwise.
STRUCTURES: dict[str, Callable[[Tensor], Tensor]] = {
    "ragged": _ragged,
    "clustered": lambda x: x.random_(0, 4).mul_(2).sub_(3),  # four values only
    "constant_rows": _constant_rows,
}


# Timed where others hide work. Sizes differ by less than in ``mixed``: beside all, the smallest sample is more than an
# output may differ by, also in BF16, so that none can be left out.
VARIED = "varied"
# Timed where all samples are averaged, so that their sizes are, too: each tensor has one size.
SIZED = "sized"
_REDRAWS = {**DRAWS, **STRUCTURES, VARIED: functools.partial(_mixed, decades=1.5), SIZED: _sized}
_OF_LOGITS = _REDRAWS | {SIZED: _sharp}


# What is timed: published inputs with some elements that are not, wherever they come to lie. Who looks at a few to
# find out that nothing but what is published comes, and then leaves out what that has no need of, is wrong.
TIMED = "timed"
_ONE_IN = 1024


def _strewn(x: Tensor) -> Tensor:
    """A few elements, drawn by lot, from -3 to 3; by their place, so that one that is drawn twice is no race."""
    every = x.as_strided((x.numel(),), (1,), x.storage_offset())
    chosen = torch.randint(x.numel(), (max(1, x.numel() // _ONE_IN),), device=x.device)
    every[chosen] = 3 * torch.cos(chosen.double()).to(x.dtype)
    return x


_ONE_ROW_IN = 64


def _strewn_rows(x: Tensor) -> Tensor:
    """A few rows of probabilities, drawn by lot, are others; by their place, as in ``_strewn``."""
    if not x.is_contiguous():
        return x
    rows = x.view(-1, x.shape[-1])
    chosen = torch.randint(len(rows), (max(1, len(rows) // _ONE_ROW_IN),), device=x.device)
    columns = torch.arange(x.shape[-1], device=x.device, dtype=torch.float64)
    logits = 3 * torch.cos(torch.outer(chosen + 1.0, columns + 1.0))
    rows[chosen] = torch.softmax(logits, dim=-1).to(x.dtype)
    return x


# Published or timed inputs with a few elements so large that each decides a sum, mean, norm or maximum of all. A result
# that leaves elements out, or is estimated from a sample of them, is wrong by far if one lies there. Their number is
# random too: many are met by a kernel that leaves out a part, few are missed by one that checks a part first.
_RARE = "rare_"
_COUNTS = (1, 4, 16, 64, 256)
_LEAST, _SPAN, _GOLDEN = 30.0, 16.0, 0.6180339887498949


def rare(draw: str) -> str:
    """Return the name of ``draw`` with rare large elements."""
    return _RARE + draw


def _spiked(x: Tensor, largest: float, squared: bool) -> Tensor:
    """Put large elements at random places; their sum is about as large as that of all others of size 1.

    Or, with ``squared``, that of their squares is. Their sizes differ by up to ``_SPAN`` times. Whoever has found one
    would know their number by its size otherwise.
    """
    every = x.as_strided((x.numel(),), (1,), x.storage_offset())
    count = _count()
    chosen = torch.randint(x.numel(), (count,), device=x.device)
    begin = torch.rand((), device=x.device, dtype=torch.float64)
    # by their place, so that one that is drawn twice is no race
    share = (begin + chosen.double() * _GOLDEN).remainder(1)
    size = max(_LEAST, x.numel() / count) * _SPAN ** (share - 0.5)
    size = size.sqrt() if squared else size
    every[chosen] = (size.clamp(_LEAST, largest) * (1 - 2 * (chosen % 2))).to(x.dtype)
    return x


def _count() -> int:
    return _COUNTS[int(torch.randint(len(_COUNTS), (), device="cpu"))]


# What a row of the first and of the second of two tensors of probabilities gets instead: how much, in one of how many
# columns. FP16 has 1e-7, and the other elements hardly show it. Who reads one of both sees one of these, not all.
_ONE, _SOME = 1 << 62, 16
_ODD_ROWS = (((1e-7, _ONE), (0.2, _ONE)), ((1e-7, _SOME), None), (None, (0.2, _ONE)))


def _spike_rows(of: list[Tensor]) -> None:
    """Give some rows of two tensors of probabilities, drawn by lot, elements that decide a divergence of the two.

    In 1/98 the divergence of such a row is some 6 to 50 times as large.
    """
    if len(of) < 2 or of[0].shape != of[1].shape or not all(x.is_contiguous() and x.numel() for x in of):
        return
    width, kind = of[0].shape[-1], int(torch.randint(len(_ODD_ROWS), (), device="cpu"))
    chosen = torch.randint(of[0].numel() // width, (_count(),), device=of[0].device)
    first = chosen * 7919 % width  # by their place, so that one that is drawn twice is no race
    behind = torch.arange(width, device=of[0].device) - first[:, None]
    for x, change in zip(of, _ODD_ROWS[kind]):
        if change:
            rows, at = x.view(-1, width), behind % change[1] == 0
            others = rows[chosen].double().masked_fill(at, 0)
            others *= (1 - change[0] * at.sum(1, keepdim=True)) / others.sum(1, keepdim=True)
            rows[chosen] = others.masked_fill(at, change[0]).to(x.dtype)


def _factors(x: Tensor) -> Tensor:
    """Signed factors from 0.99 to 1.01, as the digits of ``x`` say: a product of tens of thousands stays in range."""
    return x.abs().mul_(997).remainder_(1).sub_(0.5).mul_(0.02).exp_().copysign_(x)


# What the words of DOMAIN make of a real tensor; None: only the published draw is valid.
DOMAINS: dict[str, Callable[[Tensor], Tensor] | None] = {
    "real": lambda x: x,
    "logits": lambda x: x,
    "nonnegative": lambda x: x.abs_(),
    "positive": lambda x: x.abs_().add_(1e-3),
    "probability": lambda x: torch.softmax(x, dim=-1),
    "factor": _factors,
    "symmetric": lambda x: (x + x.mT) / 2,
    "lower_triangular": lambda x: x.tril_(),
    "upper_triangular": lambda x: x.triu_(),
    "index": None,
    "sign": None,
    "mask": None,
    "published": None,  # no other draw is known to be valid
}


def domains(problem: Problem) -> dict[str, str]:
    """The word of ``DOMAIN`` for each argument of ``forward``.

    Raises ProblemError for a word that is not in ``DOMAINS`` or an input that does not exist.
    """
    names = list(inspect.signature(problem.module.Model.forward).parameters)[1:]
    declared = getattr(problem.module, "DOMAIN", "real")
    if isinstance(declared, str):
        declared = dict.fromkeys(names, declared)
    words = {**dict.fromkeys(names, "real"), **declared}
    for name, word in words.items():
        if word not in DOMAINS:
            raise ProblemError(f"{problem.path}: DOMAIN has no word '{word}'; it may say: {', '.join(DOMAINS)}")
        if name not in names:
            raise ProblemError(f"{problem.path}: DOMAIN names '{name}', but forward takes {', '.join(names)}")
    return words


def redraw(
    values: list, problem: Problem, draw: str, largest: float = math.inf, reseed: Callable[[], None] = lambda: None
) -> list:
    """Published inputs drawn anew as ``draw`` says, each within its domain.

    Integers, booleans, scalars, complex tensors and those of 8 bits stay as published. No rare
    element is beyond ``largest``. ``reseed`` is called before places are drawn by lot: a generator's state on a CPU
    follows from a few of its numbers, and who works it out would know where rare elements lie and need not read the
    others.
    """
    if draw == "published":
        return values
    if draw.startswith(_RARE):
        values = redraw(values, problem, draw.removeprefix(_RARE), reseed=reseed)
        reseed()
        change = functools.partial(_spiked, largest=largest, squared=problem.squared)
        words = _words(values, problem)
        _spike_rows([value for value, word in zip(values, words) if word == "probability"])
        return [_in_place(value, word, change) for value, word in zip(values, words)]
    if draw == TIMED:
        reseed()
        strewn = {"probability": _strewn_rows}
        return [_in_place(v, word, strewn.get(word, _strewn)) for v, word in zip(values, _words(values, problem))]
    draws = ((_OF_LOGITS if word == "logits" else _REDRAWS, word) for word in _words(values, problem))
    return [_redraw(value, redraws[draw], DOMAINS[word]) for value, (redraws, word) in zip(values, draws)]


def has_structure(values: list, problem: Problem) -> bool:
    """Return whether an input can have another structure: a floating-point tensor whose domain is known."""
    return any(
        isinstance(value, Tensor) and is_scaled(value) and value.ndim > 0 and DOMAINS[word] is not None
        for value, word in zip(values, _words(values, problem))
    )


def _words(values: list, problem: Problem) -> list[str]:
    words = list(domains(problem).values())
    declared = getattr(problem.module, "DOMAIN", "real")
    rest = declared if isinstance(declared, str) else "real"
    return words + [rest] * (len(values) - len(words))  # forward(*inputs) names none


def _in_place(value, word: str, change: Callable[[Tensor], Tensor]):
    """Change some elements within the domain; none where that, or how they lie in memory, has no room for it."""
    dense = isinstance(value, Tensor) and is_scaled(value) and value.numel() and is_dense(value)
    if not dense or DOMAINS[word] is None:
        return value
    if word == "probability":  # single elements have no other values: rows sum to 1
        return change(value) if change is _strewn_rows else value
    return DOMAINS[word](change(value))


def _redraw(value, draw: Callable[[Tensor], Tensor], domain: Callable[[Tensor], Tensor] | None):
    if not isinstance(value, Tensor) or not is_scaled(value) or domain is None:
        return value
    if 0 in value.stride():  # an expanded tensor has no place for each element
        value = value.clone()
    return domain(draw(value))
