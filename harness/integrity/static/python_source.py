"""Findings in Python, by its syntax tree; names are followed through imports, not through values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from harness.integrity.static import cpp_source
from harness.integrity.static.rules import Finding
from harness.solution.helper_files import NOT_PYTHON
from harness.solution.languages import of_decorators

# Dotted names as imports spell them out; a trailing dot means everything below.
_NAMES = {
    "library_call": "torch.nn.functional. torch.ops.aten. torch.matmul torch.mm torch.bmm torch.addmm torch.baddbmm "
    "torch.einsum torch.tensordot torch.softmax torch.log_softmax torch.relu torch.sigmoid torch.tanh torch.conv1d "
    "torch.conv2d torch.conv3d torch.conv_transpose1d torch.conv_transpose2d torch.conv_transpose3d torch.sum "
    "torch.mean torch.max torch.min torch.cumsum torch.cumprod torch.argmax torch.argmin torch.layer_norm "
    "torch.batch_norm torch.group_norm torch.lstm torch.gru torch.compile torch.linalg.",
    "clock": "time.perf_counter time.perf_counter_ns time.monotonic time.time time.time_ns torch.cuda.Event",
    "lower_precision": "torch.float16 torch.half torch.bfloat16 torch.autocast torch.amp. torch.cuda.amp. "
    "torch.float8_e4m3fn torch.float8_e5m2",
    "memory_format": "torch.channels_last torch.channels_last_3d",
    "environment": "os.environ os.getenv os.putenv",
    "foreign_code": "ctypes. cffi. subprocess. os.system os.popen torch.ops.load_library",
    "dynamic_code": "exec eval compile __import__ importlib. marshal. pickle. types.CodeType types.FunctionType",
    "files": "open io.open os.open os.remove os.rename os.link shutil. tempfile. mmap. torch.save torch.load "
    "torch.from_file numpy.fromfile numpy.memmap numpy.load numpy.save multiprocessing.shared_memory.",
    "threads": "threading. _thread. concurrent.futures. asyncio. torch.jit.fork torch.futures.",
    "streams": "torch.cuda.Stream torch.cuda.stream torch.cuda.set_stream torch.cuda.ExternalStream",
    "cuda_graph": "torch.cuda.CUDAGraph torch.cuda.graph torch.cuda.graphs. torch.cuda.make_graphed_callables",
    "global_settings": "torch.backends. torch.set_num_threads torch.set_float32_matmul_precision torch.manual_seed "
    "torch.set_default_dtype torch.set_default_device torch.use_deterministic_algorithms torch.cuda.manual_seed "
    "torch.random. torch.set_flush_denormal",
    "process_control": "os._exit os.abort os.kill os.killpg os.fork os.execv os.execve os.spawnv os.setsid sys.exit "
    "exit quit signal. multiprocessing. atexit. faulthandler. resource.",
    "network": "socket. urllib. http. requests. ftplib. smtplib. aiohttp.",
    "introspection": "gc. inspect. sys._getframe sys.modules sys.settrace sys.setprofile sys._current_frames globals "
    "traceback. torch._C._cuda_memorySnapshot torch.cuda.memory_snapshot",
    "lazy_tensor": "torch.Tensor._make_wrapper_subclass torch.Tensor._make_subclass",
}  # fmt: skip
_WHOLE = {name: rule for rule, names in _NAMES.items() for name in names.split() if not name.endswith(".")}
_BELOW = {name: rule for rule, names in _NAMES.items() for name in names.split() if name.endswith(".")}
_LOWER_PRECISION_METHODS = {"half", "bfloat16"}
_FAST_MATH = ("--use_fast_math", "-use_fast_math", "-ffast-math", "-Ofast")
_IDENTITIES = {"data_ptr", "untyped_storage", "_version", "_cdata"}


def find(source: str, file: str) -> list[Finding]:
    """Return the findings in Python source; one that cannot be parsed is a finding itself."""
    try:
        return _Reader(ast.parse(source), file).found
    except NOT_PYTHON as error:
        return [Finding(file, getattr(error, "lineno", None) or 1, "unreadable", type(error).__name__)]


class _Reader(ast.NodeVisitor):
    """Walks one module and collects."""

    def __init__(self, tree: ast.Module, file: str):
        self.found: list[Finding] = []
        self._file = file
        self._aliases: dict[str, str] = {}  # local name -> dotted name
        self._texts = _assigned_texts(tree)
        self._read: set[int] = set()  # texts in C++, each once
        self._identities: set[str] = set()  # names that hold an address or the like
        self._addressed: list[int] = []  # lines of C++ that take a tensor's address
        self._knows_strides = any(
            isinstance(node, ast.Attribute) and node.attr in cpp_source.KNOWS_STRIDES for node in ast.walk(tree)
        )
        for node in ast.walk(tree):
            self._learn_import(node)
        self.visit(tree)
        self._find_unlaunched(tree)
        if self._addressed and not self._knows_strides:
            self.found.append(Finding(file, min(self._addressed), "assumes_contiguous", "data_ptr"))

    def _report(self, node: ast.AST, rule: str, code: str | None = None) -> None:
        code = code or ast.unparse(node).partition("\n")[0]
        self.found.append(Finding(self._file, node.lineno, rule, code))

    def _learn_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                self._aliases[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                self._aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def _dotted(self, node: ast.AST) -> str | None:
        """The name that an expression stands for, with imports spelled out; builtins by their own name."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        return ".".join([self._aliases.get(node.id, node.id), *reversed(parts)])

    def _rule_of(self, name: str) -> str | None:
        return _WHOLE.get(name) or next((r for prefix, r in _BELOW.items() if f"{name}.".startswith(prefix)), None)

    # -- names ---------------------------------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._imported(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._imported(node, f"{node.module}.{alias.name}" if node.module else alias.name)

    def _imported(self, node: ast.AST, name: str) -> None:
        last = name.rpartition(".")[2]
        if last == "Model" or name.split(".")[0] in ("problems", "harness", "kernelbench"):
            self._report(node, "reference")
        elif rule := self._rule_of(name):
            if rule != "library_call":  # a library is used where it is called
                self._report(node, rule)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self._dotted(node)
        if name and (rule := self._rule_of(name)):
            self._report(node, rule)
            return
        if node.attr in ("__globals__", "__subclasses__", "f_locals", "f_globals", "f_back", "__code__"):
            self._report(node, "introspection")
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        name = self._aliases.get(node.id, node.id)
        if isinstance(node.ctx, ast.Load) and (rule := _WHOLE.get(name)):
            self._report(node, rule)

    # -- statements and expressions ------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        name = self._dotted(node.func) or ""
        if name in ("setattr", "delattr") and node.args and self._is_foreign(node.args[0]):
            self._report(node, "monkey_patch")
        elif name == "getattr" and len(node.args) > 1:
            if not isinstance(node.args[1], ast.Constant):
                self._report(node, "dynamic_code")
            elif node.args[1].value == "Model":
                self._report(node, "reference")
        elif name.rpartition(".")[2] == "load_inline":
            self._read_inline(node)
            for flag in (inner for argument in node.keywords for inner in ast.walk(argument.value)):
                if isinstance(flag, ast.Constant) and flag.value in _FAST_MATH:
                    self._report(flag, "fast_math", flag.value)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _LOWER_PRECISION_METHODS:
            self._report(node, "lower_precision", f".{node.func.attr}()")
        elif isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "setdefault", "pop") and node.args:
            if self._is_identity(node.args[0]):
                self._report(node, "identity_cache")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.MatMult):
            self._report(node, "library_call")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Attribute) and self._is_foreign(target.value):
                self._report(node, "monkey_patch")
            elif isinstance(target, ast.Name) and self._is_identity(node.value):
                self._identities.add(target.id)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if self._is_identity(node.slice):
            self._report(node, "identity_cache")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops) and self._is_identity(node.left):
            self._report(node, "identity_cache")
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for base in node.bases:
            name = self._dotted(base) or ""
            if name in ("torch.Tensor", "torch.nn.Parameter"):
                self._report(node, "lazy_tensor", f"class {node.name}({ast.unparse(base)})")
            elif name.rpartition(".")[2] == "Model":
                self._report(node, "reference", f"class {node.name}({ast.unparse(base)})")
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in ("__torch_function__", "__torch_dispatch__"):
            self._report(node, "lazy_tensor", f"def {node.name}")
        self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> None:
        for handler in node.handlers:
            if called := next(self._library_calls(handler.body), None):
                self._report(called, "fallback")
        self.generic_visit(node)

    def _library_calls(self, body: list[ast.stmt]) -> Iterator[ast.AST]:
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                    yield node
                elif isinstance(node, ast.Call):
                    name = self._dotted(node.func) or ""
                    if self._rule_of(name) == "library_call" or name.rpartition(".")[2] in ("Model", "reference"):
                        yield node

    def _is_foreign(self, node: ast.AST) -> bool:
        """Return whether an object belongs to something that was imported."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self._aliases

    def _is_identity(self, node: ast.AST) -> bool:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute) and inner.attr in _IDENTITIES:
                return True
            if isinstance(inner, ast.Name) and inner.id in self._identities:
                return True
            if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "id":
                return True
        return False

    # -- kernels -------------------------------------------------------------------------------------------------------

    def _read_inline(self, node: ast.Call) -> None:
        """The C++ and CUDA sources of a ``load_inline``, as far as they are constants."""
        values = [*node.args[1:3], *(k.value for k in node.keywords if k.arg in ("cpp_sources", "cuda_sources"))]
        texts = {id(text): text for value in values for text in self._constants(value)}
        for text in texts.values():
            if id(text) in self._read:
                continue
            self._read.add(id(text))
            self.found += cpp_source.find_in_extension(text.value, self._file, text.lineno)
            line, knows_strides = cpp_source.addresses(text.value, text.lineno)
            self._addressed += [] if line is None else [line]
            self._knows_strides |= knows_strides

    def _constants(self, node: ast.AST) -> Iterator[ast.Constant]:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                yield inner
            elif isinstance(inner, ast.Name):
                yield from self._texts.get(inner.id, ())

    def _find_unlaunched(self, tree: ast.Module) -> None:
        """Kernels in Python that nothing names beside their definition."""
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name not in used:
                decorators = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
                if any(self._dotted(decorator) in of_decorators() for decorator in decorators):
                    self._report(node, "unlaunched_kernel", node.name)


def _assigned_texts(tree: ast.Module) -> dict[str, list[ast.Constant]]:
    """Name -> the string constants that it is given anywhere."""
    texts: dict[str, list[ast.Constant]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            constants = [c for c in ast.walk(node.value) if isinstance(c, ast.Constant) and isinstance(c.value, str)]
            for target in node.targets:
                if isinstance(target, ast.Name) and constants:
                    texts.setdefault(target.id, []).extend(constants)
    return texts
