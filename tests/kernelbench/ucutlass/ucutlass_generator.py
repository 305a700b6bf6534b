"""Random programs: some of any words, some near a valid one, some with broken text."""

import random

from kernelbench.ucutlass.language import vocabulary
from kernelbench.ucutlass.language.vocabulary import Kind

SIZES = [1, 2, 3, 8, 16, 24, 32, 48, 64, 64, 96, 128, 128, 128, 192, 256, 256, 512]
SMALL = [0, 1, 1, 2, 2, 3, 4, 4, 5, 7, 8, 16]
NUMBERS = ["0", "1", "-1", "0.5", "6", "-2.25", "1e-5", "1e30"]
NAMES = ["v", "w", "residual", "t", "gate", "shift", "A", "bias", "a__b", "int", "E"]
EXPRESSIONS = ["x", "x * x", "x * s", "sigmoid(x) * x + s", "max(x, 0)", "y", "x if x > 0 else s", "f(x)", "(x"]
GOOD = {
    "dtype": ["input=fp16, acc=fp32, output=fp16", "input=bf16, acc=fp32, output=bf16",
              "input=fp16, acc=fp32, output=fp32", "input=tf32, acc=fp32, output=fp32",
              "input=fp32, acc=fp32, output=fp32", "input=e4m3, acc=fp32, output=fp16",
              "input=s8, acc=s32, output=s32", "input=fp64, acc=fp64, output=fp64"],
    "arch": ["sm_90a"] * 4 + ["sm_80", "sm_80", "sm_86", "sm_89", "sm_90", "sm_70", "sm_100"],
}  # fmt: skip


class Generator:
    """Programs from one seed, the same on every machine."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def program(self) -> str:
        """One program of one of the kinds."""
        kind = self.random.random()
        source = self.wild() if kind < 0.25 else self.near()
        if self.random.random() < 0.15:
            source = f"pipeline({self._stages(source)})"
        if self.random.random() < 0.1:
            source += f" bind({self.random.choice(['A=x', 'input=x', 'D=out, B=w', 'stride=2', 'A=3', 'q=r'])})"
        return self.broken(source) if kind > 0.93 else source

    def wild(self) -> str:
        """Any operation with any clauses and epilogues, each call with its own arguments."""
        parts = [self.call(self.pick(vocabulary.OPERATIONS))]
        clauses = [self.pick(vocabulary.CONFIGURATIONS) for _ in range(self.random.randint(0, 9))]
        parts += ["." + self.call(form) for form in clauses]
        parts += [" >> " + self.call(self.pick(vocabulary.EPILOGUES)) for _ in range(self.random.randint(0, 4))]
        return "".join(parts)

    def near(self) -> str:
        """A kernel with what is required, and a few further choices that suit its architecture."""
        chosen = self.random.choice
        operation = self.pick(vocabulary.OPERATIONS) if self.random.random() < 0.3 else vocabulary.OPERATIONS["gemm"]
        arch = chosen(GOOD["arch"])
        dtype = chosen(GOOD["dtype"][:2] if self.random.random() < 0.6 else GOOD["dtype"])
        parts = [self.call(operation), f".with_dtype({dtype})", f".with_arch({arch})"]
        if "gemm" in operation.word:
            order = chosen(["RowMajor", "ColumnMajor"])
            parts.append(f".with_layout(A=RowMajor, B={order}, C=RowMajor)")
        late = "90" in arch or "100" in arch
        words = ["with_threadblockshape", "with_cluster", "with_scheduler", "with_operand_swap"] if late else [
            "with_tile", "with_swizzle", "with_iterator", "with_split_k"]  # fmt: skip
        words += ["with_stages", "with_alignment", "with_scaling"]
        for word in self.random.sample(words, self.random.choice([0, 0, 1, 1, 2, 3])):
            parts.append("." + self.call(vocabulary.CONFIGURATIONS[word]))
        count = self.random.choice([0, 0, 0, 1, 1, 2])
        parts += [" >> " + self.call(self.pick(vocabulary.EPILOGUES)) for _ in range(count)]
        return "".join(parts)

    def broken(self, source: str) -> str:
        """The text with something removed, doubled or put in."""
        for _ in range(self.random.randint(1, 3)):
            place = self.random.randrange(len(source) + 1)
            width = self.random.randint(1, 12)
            twice = source[place : place + width] * 2
            piece = self.random.choice(["", twice, "(", ")", ".", ">>", ",", "é", "'", "\x00", "="])
            source = source[:place] + piece + source[place + width :]
        return source

    def pick(self, table):
        return table[self.random.choice(list(table))]

    def call(self, form) -> str:
        if form.word == "with_layout" and self.random.random() < 0.3:
            form = vocabulary.CONV_LAYOUT
        shown = []
        for parameter in form.parameters:
            if not parameter.required and self.random.random() < 0.5:
                continue
            value = self.value(form.word, parameter)
            shown.append(f"{parameter.name}={value}" if parameter.keyword else value)
        if form.word in ("with_scheduler", "with_cluster"):
            self.random.shuffle(shown)
        return f"{form.word}({', '.join(shown)})"

    def value(self, word: str, parameter) -> str:
        choose = self.random.choice
        if isinstance(parameter.values, dict):
            return choose(list(parameter.values))
        if parameter.values is Kind.INTEGER:
            return str(choose(SIZES if "tile" in word or "shape" in word else SMALL))
        return {Kind.NUMBER: lambda: choose(NUMBERS), Kind.NAME: lambda: choose(NAMES),
                Kind.STRING: lambda: f"'{choose(EXPRESSIONS)}'",
                Kind.INPUTS: lambda: f"{{'s': '{choose(['row', 'column', 'matrix', 'scalar', 'rows'])}'}}",
                }[parameter.values]()  # fmt: skip

    def _stages(self, kernel: str) -> str:
        axes = self.random.choice([("NCL", "NLC"), ("NCHW", "NHWC"), ("NLC", "NLC"), ("NCL", "NHWC")])
        types = self.random.choice(["", ", fp32, fp16", ", fp16, fp32", ", fp32"])
        stages = [f"transpose({self.random.choice(['input', 'weight'])}, {axes[0]}, {axes[1]}{types})", kernel]
        if self.random.random() < 0.5:
            stages.append(f"transpose(output, {axes[1]}, {axes[0]})")
        if self.random.random() < 0.2:
            stages.append(self.near())
        if self.random.random() < 0.1:
            self.random.shuffle(stages)
        return ", ".join(stages)
