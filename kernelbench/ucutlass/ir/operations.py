"""Operations: matrix products and convolutions."""

from __future__ import annotations

from dataclasses import dataclass

from kernelbench.ucutlass.ir.position import Position, at_field
from kernelbench.ucutlass.ir.words import ConvForm, Direction, GemmForm


@dataclass(frozen=True)
class Gemm:
    """D[M, N] = A[M, K] · B[K, N], once, for each of a batch, or for each of ``expert_count`` problems."""

    form: GemmForm = GemmForm.STANDARD
    expert_count: int | None = None  # grouped only
    at: Position | None = at_field()

    @property
    def word(self) -> str:
        return self.form.value


@dataclass(frozen=True)
class Conv:
    """A convolution (cross-correlation) of ``rank`` spatial dimensions; ``kernel`` is (d, h, w), (h, w) or (w,)."""

    kernel: tuple[int, ...]
    direction: Direction = Direction.FPROP
    form: ConvForm = ConvForm.STANDARD
    groups: int = 1  # grouped only; of a depthwise convolution, the channels
    at: Position | None = at_field()

    @property
    def rank(self) -> int:
        return len(self.kernel)

    @property
    def word(self) -> str:
        name = f"{self.form.value}{self.rank}d"
        return f"{name}_{self.direction.value}" if self.form is ConvForm.STANDARD else name


Operation = Gemm | Conv
