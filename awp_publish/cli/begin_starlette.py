"""A site for an application of FastAPI or Starlette, in the file that makes the application."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from awp_publish.cli.sources import FileChange, FoundApplication, read_source, refuse_twice, site_lines, title_of

MAX_DEPTH: Final = 4
"""Folders below the project's in which applications are looked for."""

LEFT_OUT: Final = frozenset(
    {"__pycache__", "build", "dist", "env", "migrations", "node_modules", "site-packages", "test", "tests", "venv"}
)

CLASSES: Final = {"FastAPI": "fastapi", "Starlette": "starlette"}

USUAL: Final = ("main.py", "app.py", "asgi.py", "server.py", "api.py", "__init__.py")


def starlette_applications(folder: Path) -> Iterator[FoundApplication]:
    """Yield the applications of a project, those in the most usual places first."""
    waiting, applications = [(folder, 0)], list[FoundApplication]()
    while waiting:
        here, depth = waiting.pop(0)
        for entry in sorted(here.iterdir()):
            if entry.is_dir():
                is_left_out = entry.name in LEFT_OUT or entry.name.startswith(".") or (entry / "pyvenv.cfg").exists()
                if not is_left_out and depth < MAX_DEPTH and not entry.is_symlink():
                    waiting.append((entry, depth + 1))
            elif entry.suffix == ".py" and not entry.name.startswith(("test_", "conftest")):
                applications += applications_in(entry)
    yield from sorted(applications, key=order_of)


def order_of(application: FoundApplication) -> tuple[int, int, str]:
    name, depth = application.path.name, len(application.path.parts)
    return depth, USUAL.index(name) if name in USUAL else len(USUAL), application.path.as_posix()


def applications_in(path: Path) -> Iterator[FoundApplication]:
    text = read_source(path)
    if text is None or not any(name in text for name in CLASSES):
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    imported = {
        alias.asname or alias.name: CLASSES[alias.name]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in CLASSES.values()
        for alias in node.names
        if alias.name in CLASSES
    }
    for node in tree.body:
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if not isinstance(value, ast.Call) or not isinstance(targets[0], ast.Name):
            continue
        making = [value, *_calls_in_function(tree, value.func)]  # FastAPI(...), or make_app() with one inside
        made = next(((call, framework) for call in making if (framework := _framework_of(call.func, imported))), None)
        if made is not None:
            call, framework = made
            texts = {
                keyword.arg: keyword.value.value
                for keyword in call.keywords
                if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)
            }
            described = texts.get("summary") or texts.get("description", "")
            title = texts.get("title", "")
            yield FoundApplication(path, text, tree, targets[0].id, framework, node.lineno, title, described)


def _framework_of(function: ast.expr, imported: Mapping[str, str]) -> str | None:
    called = getattr(function, "id", "") or getattr(function, "attr", "")  # FastAPI(...), fastapi.FastAPI(...)
    return imported.get(called) or (CLASSES.get(called) if isinstance(function, ast.Attribute) else None)


def _calls_in_function(tree: ast.Module, function: ast.expr) -> Iterator[ast.Call]:
    """Yield the calls within the function of a module that a name stands for."""
    name = getattr(function, "id", None)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield from (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))


def plan_application(application: FoundApplication, folder: Path) -> FileChange:
    """Return the change that publishes an application: imports beside the others, and the site at the end."""
    text = application.text
    refuse_twice(application.path, text)
    names_in_use = {node.id for node in ast.walk(application.tree) if isinstance(node, ast.Name)}
    site = next(name for name in ("site", "agents_site", "site_for_agents") if name not in names_in_use)
    name = application.title or title_of(folder)
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")  # as the parser counts them
    has_os = any(
        isinstance(node, ast.Import) and any(name.name == "os" and name.asname is None for name in node.names)
        for node in application.tree.body
    )
    published = [
        *site_lines(site, name, application.description, "routes"),
        f"{application.name}.add_middleware(AgentPublisher, site={site})",
    ]
    end = next((node.lineno - 1 for node in application.tree.body if _is_main(node)), len(lines))
    while end > 0 and not lines[end - 1].strip():
        end -= 1
    rest = lines[end:]
    lines = [*lines[:end], "", *([] if end and not lines[end - 1][:1].isspace() else [""]), *published, *rest]
    imports = [node for node in application.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    before = [node for node in imports if node.lineno < application.line]
    last = before[-1].end_lineno or 0 if before else application.line - 1
    added = [*([] if has_os else ["import os"]), "from awp_publish import AgentPublisher, Site"]
    lines[last:last] = added
    newline = "\r\n" if "\r\n" in text else "\n"
    return FileChange(application.path, text, newline.join(lines) + newline)


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
