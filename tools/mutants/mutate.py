"""Mutants of a module: its source with one small mistake each."""

import ast
import difflib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

SWAPPED: Final[Mapping[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.Mod: ast.Add,
}
OPPOSITES: Final = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
LEFT_OUT: Final = {"strip", "lstrip", "rstrip", "lower", "casefold", "copy", "removeprefix", "removesuffix", "replace"}
"""Methods that give back almost what they are called on."""

UNSEEN: Final = {"repr", "slots", "frozen", "kw_only", "compare", "hash", "stacklevel", "exc_info", "name", "extra"}
"""Keyword arguments that no caller of the package notices."""

NOT_CALLED: Final = {"cast", "TypeVar", "ParamSpec", "NewType", "namedtuple", "getLogger", "ContextVar"}
GENERIC: Final = {
    "Annotated",
    "Counter",
    "TypeAdapter",
    "defaultdict",
    "deque",
    "dict",
    "frozenset",
    "list",
    "set",
    "tuple",
    "WeakValueDictionary",
}
"""What stands before types, of which nothing is left when a program runs."""

LOGS: Final = {"debug", "info", "warning", "error", "exception", "log", "warn"}

Change = tuple[ast.AST, str]
"""A node and what is written in its place."""


@dataclass(frozen=True)
class Mutant:
    path: str
    source: str
    begin: int
    end: int
    text: str
    first: int
    last: int
    statement: ast.stmt
    key: str
    """An id that changes elsewhere in the file leave alone."""

    @cached_property
    def mutated(self) -> str:
        data = self.source.encode()
        return (data[: self.begin] + self.text.encode() + data[self.end :]).decode()

    @cached_property
    def diff(self) -> str:
        lines = (self.source.splitlines(), self.mutated.splitlines())
        return "\n".join(list(difflib.unified_diff(*lines, n=1, lineterm=""))[3:])

    @cached_property
    def is_valid(self) -> bool:
        try:
            return ast.dump(ast.parse(self.mutated)) != ast.dump(ast.parse(self.source))
        except SyntaxError:
            return False


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """Return the mutants of a file, in the order of its lines."""
    source, name = path.read_text(), str(path.relative_to(root))
    data, lines, starts = source.encode(), source.splitlines(), [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    mutants: dict[tuple[int, int, str], Mutant] = {}
    alike = Counter[str]()
    for statement, (node, text) in _changes(ast.parse(source)):
        first, last = _position(node, "lineno"), _position(node, "end_lineno")
        begin = starts[first - 1] + _position(node, "col_offset")
        end = starts[last - 1] + _position(node, "end_col_offset")
        function = getattr(statement, "function", "")
        words = "\0".join((name, function, lines[first - 1].strip(), data[begin:end].decode(), text))
        alike[words] += 1
        key = hashlib.sha256(f"{words}\0{alike[words]}".encode()).hexdigest()[:12]
        mutant = Mutant(name, source, begin, end, text, first, last, statement, key)
        mutants.setdefault((begin, end, text), mutant)
    return list(mutants.values())


def _position(node: ast.AST, name: str) -> int:
    return int(getattr(node, name))


def _changes(tree: ast.Module) -> Iterator[tuple[ast.stmt, Change]]:
    def visit(node: ast.AST, statement: ast.stmt, function: str) -> Iterator[tuple[ast.stmt, Change]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}"
        if isinstance(node, ast.stmt):
            statement = node
            vars(node)["function"] = function
        for kind, change in CHANGES:
            if isinstance(node, kind):
                yield from ((statement, each) for each in change(node))
        for child in _children(node):
            yield from visit(child, statement, function)

    for node in tree.body:
        yield from visit(node, node, "")


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node in which a mistake would be one of behaviour."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Assert():
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            yield from node.orelse
            return
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")]):
            return
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
            return
        case ast.Subscript(value=ast.Name(id=name)) if name in GENERIC:
            return
        case ast.Call(func=ast.Name(id=name)) if name in NOT_CALLED:
            return
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Call(func=ast.Attribute(attr=name)) if name in LOGS:
            return
        case ast.ClassDef(bases=[*_, ast.Name(id="Protocol" | "TypedDict")]):
            return
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "type_params"} or (field == "bases" and isinstance(node, ast.ClassDef)):
            continue
        if field == "decorator_list":
            value = [each for each in value if isinstance(each, ast.Call) and "dataclass" not in ast.unparse(each)]
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not (isinstance(child, ast.keyword) and child.arg in UNSEEN):
                yield child


def _with(node: ast.AST, **fields: object) -> Change:
    other: Any = copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return node, f"({ast.unparse(other)})"


def _without(items: list[Any], index: int) -> list[Any]:
    return items[:index] + items[index + 1 :]


def _compare(node: ast.Compare) -> Iterator[Change]:
    for index, each in enumerate(node.ops):
        yield _with(node, ops=[*node.ops[:index], SWAPPED[type(each)](), *node.ops[index + 1 :]])


def _boolean(node: ast.BoolOp) -> Iterator[Change]:
    yield _with(node, op=SWAPPED[type(node.op)]())
    for index in range(len(node.values)):
        values = _without(node.values, index)
        yield (node, f"({ast.unparse(values[0])})") if len(values) == 1 else _with(node, values=values)


def _arithmetic(node: ast.BinOp) -> Iterator[Change]:
    if type(node.op) in SWAPPED:
        yield _with(node, op=SWAPPED[type(node.op)]())


def _negation(node: ast.UnaryOp) -> Iterator[Change]:
    if isinstance(node.op, ast.Not | ast.USub):
        yield node, f"({ast.unparse(node.operand)})"


def _condition(node: ast.If | ast.IfExp) -> Iterator[Change]:
    if ast.unparse(node.test) != "TYPE_CHECKING":
        yield node.test, "True"
        yield node.test, "False"


def _loop(node: ast.For | ast.comprehension) -> Iterator[Change]:
    if isinstance(node, ast.comprehension):
        yield from ((each, "True") for each in node.ifs)
    if not getattr(node, "is_async", 0):
        yield node.iter, f"__import__('itertools').islice({ast.unparse(node.iter)}, 1)"


def _constant(node: ast.Constant) -> Iterator[Change]:
    match node.value:
        case bool(value):
            yield node, repr(not value)
        case int(value) | float(value):
            yield node, repr(value + 1)
        case str(value) if value and " " not in value:
            yield node, repr("XX" + value)
        case bytes(value) if value:
            yield node, repr(b"XX" + value)


def _display(node: ast.Tuple | ast.List | ast.Set) -> Iterator[Change]:
    if len(node.elts) > 1 and not isinstance(getattr(node, "ctx", None), ast.Store):
        yield from (_with(node, elts=_without(node.elts, index)) for index in range(len(node.elts)))


def _mapping(node: ast.Dict) -> Iterator[Change]:
    for index in range(len(node.keys)):
        yield _with(node, keys=_without(node.keys, index), values=_without(node.values, index))


def _call(node: ast.Call) -> Iterator[Change]:
    match node.func:
        case ast.Name(id=name) if name in OPPOSITES:
            yield _with(node, func=ast.Name(OPPOSITES[name]))
            if name in {"min", "max"} and not node.keywords and len(node.args) > 1:
                yield from ((node, f"({ast.unparse(each)})") for each in node.args)
        case ast.Attribute(attr=name, value=value) if name in LEFT_OUT:
            yield node, ast.unparse(value)
        case ast.Name(id=name) if name in NOT_CALLED:
            return
    for index, each in enumerate(node.keywords):
        if each.arg is not None and each.arg not in UNSEEN:
            yield _with(node, keywords=_without(node.keywords, index))


def _slice(node: ast.Slice) -> Iterator[Change]:
    for bound in (node.lower, node.upper):
        if bound is not None:
            yield bound, ""


def _result(node: ast.Return) -> Iterator[Change]:
    if node.value is not None and ast.unparse(node.value) != "None":
        yield node.value, "None"


def _removal(node: ast.stmt) -> Iterator[Change]:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))) if name in LOGS:
            return
        case ast.Assign(targets=[ast.Name()]) | ast.Expr(value=ast.Constant()):
            return
    yield node, "pass"


CHANGES: Final[Iterable[tuple[Any, Callable[[Any], Iterator[Change]]]]] = [
    (ast.Compare, _compare),
    (ast.BoolOp, _boolean),
    (ast.BinOp, _arithmetic),
    (ast.UnaryOp, _negation),
    ((ast.If, ast.IfExp), _condition),
    ((ast.For, ast.comprehension), _loop),
    (ast.Constant, _constant),
    ((ast.Tuple, ast.List, ast.Set), _display),
    (ast.Dict, _mapping),
    (ast.Call, _call),
    (ast.Slice, _slice),
    (ast.Return, _result),
    (ast.ExceptHandler, lambda node: iter([(node.type, "()")] if node.type else [])),
    ((ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Delete), _removal),
    (ast.Continue, lambda node: iter([(node, "break")])),
    (ast.Break, lambda node: iter([(node, "continue")])),
]
