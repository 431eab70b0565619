"""`awp-publish init`: a first site in a project that is there. It asks nothing, and shows every line that it writes.

The framework is found by itself: Django by its `manage.py`, FastAPI and Starlette by a module that makes an
application. What is written publishes the routes that only read, on the address of a local trial, so that it works at
once. Nothing is imported or run.
"""

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from awp_publish.cli.console import Console, write
from awp_publish.problems import DeclarationError

MAX_DEPTH: Final = 4
"""Folders below the project's in which applications are looked for."""

MAX_BYTES: Final = 1_000_000
LOCAL_URL: Final = "http://127.0.0.1:8000"

_LEFT_OUT: Final = frozenset(
    {"__pycache__", "build", "dist", "env", "migrations", "node_modules", "site-packages", "test", "tests", "venv"}
)
_CLASSES: Final = {"FastAPI": "fastapi", "Starlette": "starlette"}
_USUAL: Final = ("main.py", "app.py", "asgi.py", "server.py", "api.py", "__init__.py")
_SETTINGS: Final = re.compile(r"DJANGO_SETTINGS_MODULE[\"']\s*,\s*[\"']([\w.]+)[\"']")
_MINE: Final = re.compile(r"^\s*(?:from|import)\s+awp_publish|[\"']awp_publish_django", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that is written: its text before, None for a new file, and afterwards."""

    path: Path
    before: str | None
    after: str

    def diff(self) -> str:
        """Return the change as a unified diff."""
        name = self.path.as_posix()
        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            "/dev/null" if self.before is None else name,
            name,
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@dataclass(frozen=True, slots=True)
class FoundApplication:
    """An application that a module makes: `name = FastAPI(...)`, with its title and description as far as these are
    written there.
    """

    path: Path
    text: str
    tree: ast.Module
    name: str
    framework: str
    line: int
    title: str
    description: str


def begin(console: Console, path: Path, *, is_dry: bool) -> int:
    """Write a first site into a project. Returns 0. Raises DeclarationError if there is none, or one with a site."""
    framework, changes, following = _plan(path)
    for change in changes:
        if not is_dry:
            change.path.write_text(change.after, encoding="utf-8", newline="")
        if not console.as_json:
            write(change.diff().removesuffix("\n"), is_block=True)
    written = f"{len(changes)} {'file' if len(changes) == 1 else 'files'}"
    done = f"Nothing was written: {written} would be." if is_dry else f"{written} of this {framework} project written."
    console.say("", done, *following)
    files = [{"file": str(one.path), "diff": one.diff()} for one in changes]
    console.json({"framework": framework, "is_written": not is_dry, "files": files})
    return 0


def _plan(path: Path) -> tuple[str, list[FileChange], list[str]]:
    if not path.exists():
        raise DeclarationError(str(path), "does not exist.", "Name a folder or a module of your project.")
    folder = path if path.is_dir() else path.parent
    manage = path if path.name == "manage.py" else folder / "manage.py"
    if path.is_dir() or path.name == "manage.py":
        if (settings := _SETTINGS.search(_read(manage) or "")) is not None:
            return (
                "Django",
                list(_of_django(folder, settings[1])),
                _next("python manage.py runserver", "manage.py agents"),
            )
        applications = list(_applications(folder))
    else:
        applications = list(_applications_in(path))
    if not applications:
        raise DeclarationError(
            str(path),
            "No application of FastAPI, Starlette or Django was found here.",
            "Name the module that makes it (awp-publish init src/shop/main.py), or write a new one: "
            "awp-publish init fastapi.",
        )
    first = applications[0]
    alike = [one for one in applications if _order(one)[:2] == _order(first)[:2]]
    if len(alike) > 1:
        listed = ", ".join(f"{one.path.as_posix()} ({one.name})" for one in alike)
        raise DeclarationError(str(path), f"There are several applications: {listed}.", "Name the module of one.")
    target = f"{_module_of(first.path)}:{first.name}"
    framework = {"fastapi": "FastAPI", "starlette": "Starlette"}[first.framework]
    return framework, [_of_application(first, folder)], _next(f"uvicorn {target}", f"awp-publish show {target}")


def _next(serve: str, show: str) -> list[str]:
    shown = "python manage.py agents show" if show.startswith("manage") else show
    return [f"See what is published:  {shown}", f"Serve it:               {serve}"]


def _module_of(path: Path) -> str:
    parts = list(path.with_suffix("").parts)
    return ".".join(part for part in parts if part not in (".", "src", "__init__")) or path.stem


# --- FastAPI and Starlette ---


def _applications(folder: Path) -> Iterator[FoundApplication]:
    """Yield the applications of a project, those in the most usual places first."""
    waiting, found = [(folder, 0)], list[FoundApplication]()
    while waiting:
        here, depth = waiting.pop(0)
        for entry in sorted(here.iterdir()):
            if entry.is_dir():
                is_left_out = entry.name in _LEFT_OUT or entry.name.startswith(".") or (entry / "pyvenv.cfg").exists()
                if not is_left_out and depth < MAX_DEPTH and not entry.is_symlink():
                    waiting.append((entry, depth + 1))
            elif entry.suffix == ".py" and not entry.name.startswith(("test_", "conftest")):
                found += _applications_in(entry)
    yield from sorted(found, key=_order)


def _order(application: FoundApplication) -> tuple[int, int, str]:
    name, depth = application.path.name, len(application.path.parts)
    return depth, _USUAL.index(name) if name in _USUAL else len(_USUAL), application.path.as_posix()


def _applications_in(path: Path) -> Iterator[FoundApplication]:
    text = _read(path)
    if text is None or not any(name in text for name in _CLASSES):
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    imported = {
        alias.asname or alias.name: _CLASSES[alias.name]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in _CLASSES.values()
        for alias in node.names
        if alias.name in _CLASSES
    }
    for node in tree.body:
        made = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if not isinstance(made, ast.Call) or not isinstance(targets[0], ast.Name):
            continue
        function = made.func
        called = (
            function.id
            if isinstance(function, ast.Name)
            else function.attr
            if isinstance(function, ast.Attribute)
            else ""
        )
        framework = imported.get(called) or (_CLASSES.get(called) if isinstance(function, ast.Attribute) else None)
        if framework is not None:
            texts = {
                one.arg: one.value.value
                for one in made.keywords
                if isinstance(one.value, ast.Constant) and isinstance(one.value.value, str)
            }
            described = texts.get("summary") or texts.get("description", "")
            title = texts.get("title", "")
            yield FoundApplication(path, text, tree, targets[0].id, framework, node.lineno, title, described)


def _of_application(application: FoundApplication, folder: Path) -> FileChange:
    """Return the change that publishes an application: imports beside the others, and the site at the end."""
    text = application.text
    _refuse_twice(application.path, text)
    taken = {node.id for node in ast.walk(application.tree) if isinstance(node, ast.Name)}
    site = next(name for name in ("site", "agents_site", "site_for_agents") if name not in taken)
    name = application.title or _title_of(folder)
    lines = text.splitlines()
    has_os = any(
        isinstance(node, ast.Import) and any(one.name == "os" and one.asname is None for one in node.names)
        for node in application.tree.body
    )
    published = [
        f"{site} = Site(",
        f"    name={_quoted(name)},",
        f"    description={_quoted(_sentence(application.description, name))},",
        f'    url=os.environ.get("AWP_PUBLISH_URL") or "{LOCAL_URL}",  # the public address',
        *(['    doors=["mcp"],'] if find_spec("mcp") is not None else []),
        ")",
        f"{site}.include()  # the routes that only read; @{site}.action declares others",
        f"{application.name}.add_middleware(AgentPublisher, site={site})",
    ]
    end = next((node.lineno - 1 for node in application.tree.body if _is_main(node)), len(lines))
    while end > 0 and not lines[end - 1].strip():
        end -= 1
    rest = lines[end:]
    lines = [*lines[:end], "", *([] if _ends_flat(lines[:end]) else [""]), *published, *rest]
    imports = [node for node in application.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    before = [node for node in imports if node.lineno < application.line]
    last = before[-1].end_lineno or 0
    added = [*([] if has_os else ["import os"]), "from awp_publish import AgentPublisher, Site"]
    lines[last:last] = added
    newline = "\r\n" if "\r\n" in text else "\n"
    return FileChange(application.path, text, newline.join(lines) + newline)


def _ends_flat(lines: list[str]) -> bool:
    """Return True if the last line belongs to no function or class, after which one empty line is enough."""
    return bool(lines) and not lines[-1].startswith((" ", "\t"))


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


# --- Django ---


def _of_django(folder: Path, module: str) -> Iterator[FileChange]:
    base = folder.joinpath(*module.split("."))
    path = next((one for one in (base.with_suffix(".py"), base / "__init__.py") if one.is_file()), None)
    text = _read(path) if path is not None else None
    if path is None or text is None:
        raise DeclarationError(f"{folder}", f"manage.py names the settings {module}, which are not here.", "")
    _refuse_twice(path, text)
    package = module.rpartition(".settings")[0] or module.rpartition(".")[0]
    agents = folder.joinpath(*package.split(".")) / "agents.py" if package else folder / "agents.py"
    if agents.exists():
        raise DeclarationError(str(agents), "exists already.", "Rename it, or follow docs/django.md by hand.")
    is_tuple = {name: re.search(rf"^{name}\s*=\s*\(", text, re.MULTILINE) for name in ("INSTALLED_APPS", "MIDDLEWARE")}

    def added(name: str, value: str) -> str:
        return f'{name} += ("{value}",)' if is_tuple[name] else f'{name} += ["{value}"]'

    site = f"{package}.agents.site" if package else "agents.site"
    lines = [
        "# What agents see of this project: awp_publish",
        added("INSTALLED_APPS", "awp_publish_django"),
        added("MIDDLEWARE", "awp_publish_django.middleware.AgentPublisherMiddleware"),
        f'AWP_PUBLISH = {{"SITE": "{site}"}}',
    ]
    newline = "\r\n" if "\r\n" in text else "\n"
    yield FileChange(path, text, newline.join([text.rstrip(), "", *lines, ""]))
    name = _title_of(Path(package.rpartition(".")[2] or folder.resolve().name))
    yield FileChange(
        agents,
        None,
        "\n".join(
            [
                f'"""What agents see of {name}."""',
                "",
                "import os",
                "",
                "from awp_publish import Site",
                "",
                "site = Site(",
                f"    name={_quoted(name)},",
                f"    description={_quoted(_sentence('', name))},",
                f'    url=os.environ.get("AWP_PUBLISH_URL") or "{LOCAL_URL}",  # the public address',
                *(['    doors=["mcp"],'] if find_spec("mcp") is not None else []),
                ")",
                "site.include()  # the views that only read; @site.action declares others",
                "",
            ]
        ),
    )


# --- Both ---


def _refuse_twice(path: Path, text: str) -> None:
    if _MINE.search(text):
        raise DeclarationError(
            str(path), "uses awp_publish already.", "awp-publish check module:app tells how it does."
        )


def _read(path: Path) -> str | None:
    """Return the text of a file, None if there is none that can be read."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _title_of(folder: Path) -> str:
    words = re.sub(r"[^A-Za-z0-9]+", " ", folder.resolve().name if folder.name in ("", ".") else folder.name).strip()
    return words[:1].upper() + words[1:] if words else "My site"


def _sentence(text: str, name: str) -> str:
    first = re.split(r"(?<=[.!?])\s|\n\s*\n", " ".join(text.split()).strip(), maxsplit=1)[0]
    return first if first else f"{name}: say in a sentence what it is for."


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
