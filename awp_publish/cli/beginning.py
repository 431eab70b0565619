"""`awp-publish init`: a first site in a project that is there. It asks nothing, and shows every line that it writes.

The framework is found by itself: Django by its `manage.py`, FastAPI and Starlette by a module that makes an
application. What is written publishes the routes that only read, on the address of a local trial, so that it works at
once. Nothing is imported or run.
"""

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from awp_publish.cli.begin_django import SETTINGS, plan_django
from awp_publish.cli.begin_starlette import applications_in, order_of, plan_application, starlette_applications
from awp_publish.cli.console import Console, write
from awp_publish.cli.sources import FileChange, read_source
from awp_publish.problems import DeclarationError


def begin(console: Console, options: Namespace) -> int:
    """Write a first site into a project. Returns 0. Raises DeclarationError if there is none, or one with a site."""
    framework, changes, following = _plan(options.framework or ".")
    is_dry: bool = options.dry_run
    for change in changes:
        if not is_dry:
            change.path.write_text(change.after, encoding="utf-8", newline="")
        if not console.as_json:
            write(change.diff().removesuffix("\n"), is_block=True)
    written = f"{len(changes)} {'file' if len(changes) == 1 else 'files'}"
    done = f"{'Would write' if is_dry else 'Wrote'} {written} of this {framework} project."
    console.say("", done, *following)
    files = [{"file": str(change.path), "diff": change.diff()} for change in changes]
    console.json({"framework": framework, "is_written": not is_dry, "files": files})
    return 0


def _plan(target: str) -> tuple[str, list[FileChange], list[str]]:
    path, name = Path(target), ""
    if not path.exists():  # the application as a server takes it, shop.main:app
        module, _, name = target.partition(":")
        path = next((file for file in _files_of(module) if file.is_file()), path)
    if not path.exists():
        remedy = "Name a folder or a file of your project, or its application: module:app."
        raise DeclarationError(target, "does not exist.", remedy)
    folder = path if path.is_dir() else path.parent
    manage = path if path.name == "manage.py" else folder / "manage.py"
    if path.is_dir() or path.name == "manage.py":
        if (settings := SETTINGS.search(read_source(manage) or "")) is not None:
            following = _next("python manage.py runserver", "python manage.py agents show")
            return "Django", list(plan_django(folder, settings[1])), following
        applications = list(starlette_applications(folder))
    else:
        applications = [found for found in applications_in(path) if name in ("", found.name)]
    if not applications:
        raise DeclarationError(
            target,
            "No FastAPI, Starlette or Django application was found here.",
            "Name the file in which a variable holds it (awp-publish init src/shop/main.py), or write a new one: "
            "awp-publish init fastapi.",
        )
    first = applications[0]
    alike = [application for application in applications if order_of(application)[:2] == order_of(first)[:2]]
    if len(alike) > 1:
        listed = ", ".join(f"{application.path.as_posix()} ({application.name})" for application in alike)
        raise DeclarationError(target, f"There are several applications: {listed}.", "Name one of them: module:app.")
    target = f"{_module_of(first.path)}:{first.name}"
    framework = {"fastapi": "FastAPI", "starlette": "Starlette"}[first.framework]
    serve = f"uvicorn --app-dir src {target}" if first.path.parts[0] == "src" else f"uvicorn {target}"
    return framework, [plan_application(first, folder)], _next(serve, f"awp-publish show {target}")


def _files_of(module: str) -> Iterator[Path]:
    for folder in (Path(), Path("src")):
        path = folder / Path(*module.split("."))
        yield from (path.with_suffix(".py"), path / "__init__.py")


def _next(serve: str, show: str) -> list[str]:
    return [f"See what is published:  {show}", f"Serve it:               {serve}"]


def _module_of(path: Path) -> str:
    parts = list(path.with_suffix("").parts)
    return ".".join(part for part in parts if part not in (".", "src", "__init__")) or path.stem
