"""Find candidates that are the reference again: the same classes and functions under other names and comments.

These functions parse what candidates wrote, so they are called by ``harness.isolated_call`` only.
"""

from __future__ import annotations

import ast

from harness.solution.helper_files import NOT_PYTHON

_OF_THE_PROBLEM = {"get_inputs", "get_init_inputs", "get_flops", "get_bytes"}
_NEW, _OLD = "ModelNew", "Model"


def is_same(candidate: str, reference: str) -> bool:
    """Return whether two Python sources define the same, apart from names of the model, comments, and inputs."""
    try:
        ours, theirs = _definitions(candidate), _definitions(reference)
    except NOT_PYTHON:
        return False
    return bool(ours) and ours == theirs


def _definitions(source: str) -> list[str]:
    tree = _Plain().visit(ast.parse(source))
    kinds = (ast.ClassDef, ast.FunctionDef)
    return [ast.dump(node) for node in tree.body if isinstance(node, kinds) and node.name not in _OF_THE_PROBLEM]


class _Plain(ast.NodeTransformer):
    """Removes what makes no difference: docstrings, annotations, the model's name, how ``super`` is written."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = _plain(node.name)
        return self._without_docstring(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self._without_docstring(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = _plain(node.id)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            node.args = []
        return self.generic_visit(node)

    def _without_docstring(self, node) -> ast.AST:
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)


def _plain(name: str) -> str:
    return _OLD if name == _NEW else name
