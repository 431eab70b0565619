"""A copy of the project that marks in a table which parts of its functions have been entered."""

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

TABLE: Final = "reached.py"
COMPOUND: Final = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.With, ast.AsyncWith, ast.Match)

Segment = tuple[int, int]
"""The first and the last line of statements of which all are executed if the first one is, unless one raises."""


def segments_of(tree: ast.Module, lines: Sequence[str]) -> Iterator[Segment]:
    """Yield the parts of all functions that can be entered, outer ones before inner ones."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _of_block(function.body, function.end_lineno or 0, lines)


def _of_block(block: Sequence[ast.stmt], end: int, lines: Sequence[str]) -> Iterator[Segment]:
    first = _first_line(block[0])
    if not lines[first - 1].lstrip().startswith("elif ") and _begins_line(block[0], lines):
        if isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant) and len(block) > 1:
            first = _first_line(block[1])  # after the docstring
        yield first, end
        yield from ((_first_line(after), end) for before, after in pairwise(block) if isinstance(before, COMPOUND))
    for statement in block:
        if isinstance(statement, COMPOUND):
            for inner in _blocks_of(statement):
                yield from _of_block(inner, inner[-1].end_lineno or 0, lines)


def _blocks_of(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        if block := getattr(statement, field, None):
            yield block
    for each in [*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]:
        yield each.body


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _begins_line(statement: ast.stmt, lines: Sequence[str]) -> bool:
    return not lines[_first_line(statement) - 1][: statement.col_offset].strip()


def instrument(path: Path, number: int) -> list[Segment]:
    """Write marks into a module, with numbers from a first one on. Return what they stand for."""
    source = path.read_text()
    tree, lines = ast.parse(source), source.splitlines()
    segments = list(segments_of(tree, lines))
    if not segments:
        return []
    marks = [(first, f"__hits__[{number + index}] = 1") for index, (first, _) in enumerate(segments)]
    head = [
        each
        for each in tree.body
        if not (isinstance(each, ast.ImportFrom) and each.module == "__future__")
        and not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
    ]
    marks.append((_first_line(head[0]), "from reached import hits as __hits__"))
    for first, mark in sorted(marks, reverse=True):
        line = lines[first - 1]
        lines.insert(first - 1, line[: len(line) - len(line.lstrip())] + mark)
    path.write_text("\n".join(lines) + "\n")
    return segments


def instrument_project(copy: Path, paths: Sequence[str]) -> dict[str, list[tuple[int, int, int]]]:
    """Write marks into the modules of a copy. Return the number, first and last line of each mark, by path."""
    marks: dict[str, list[tuple[int, int, int]]] = {}
    number = 0
    for path in paths:
        segments = instrument(copy / path, number)
        marks[path] = [(number + index, *segment) for index, segment in enumerate(segments)]
        number += len(segments)
    (copy / TABLE).write_text(f'"""Which marks have been passed."""\n\nhits = bytearray({number})\n')
    return marks
