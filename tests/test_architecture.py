"""The house holds: who imports whom, what is imported when, what a name says."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "awp_publish"

RANKS = {
    "problems": 0,
    "model": 0,
    "schema": 1,
    "schema_reading": 1,
    "redaction": 1,
    "media": 1,
    "selectors": 1,
    "networks": 1,
    "stores": 1,
    "pages": 1,
    "threads": 1,
    "workflows": 1,
    "protocols": 2,
    "discover": 2,
    "checks": 2,
    "browsing": 2,
    "running": 3,
    "settings": 3,
    "site": 3,
    "resolve": 3,
    "health": 3,
    "templating": 3,
    "policy": 3,
    "jobs": 3,
    "traffic": 3,
    "events": 3,
    "invoke": 4,
    "serve": 5,
    "cli": 6,
    "commands": 6,
    "client": 6,
    "__main__": 6,
    "": 6,
}
MAY_IMPORT = {
    "protocols": {"model", "schema", "schema_reading", "problems", "protocols"},
    "invoke": {room for room, rank in RANKS.items() if rank <= 4} - {"protocols"},
    "policy": {room for room, rank in RANKS.items() if rank <= 1} | {"policy"},
    "jobs": {room for room, rank in RANKS.items() if rank <= 1} | {"jobs"},
    "traffic": {room for room, rank in RANKS.items() if rank <= 1},
}
EXTRAS = {
    "brotli",
    "django",
    "fastapi",
    "jinja2",
    "markupsafe",
    "mcp",
    "mcp_types",
    "msgpack",
    "a2a",
    "psycopg",
    "redis",
    "selectolax",
    "taskiq",
    "taskiq_redis",
    "jwt",
    "opentelemetry",
    "jsonata",
    "jsonatapy",
    "playwright",
    "rich",
    "http_message_signatures",
    "http_sf",
    "prometheus_client",
}
SUBJECTS = {"msgpack": "awp", "psycopg": "postgres", "psycopg_pool": "postgres"}
SAYS_NOTHING = {"utils", "helpers", "common", "base", "manager", "misc"}
FLOORS = 7
"""How deep imports go at most: HTML to SOM takes four of them, a browsing session two more, the AWP door one."""
MOST_MODULES = {
    "": 21,  # what is a room by itself: site, settings, invoke, ...
    "browsing": 10,
    "checks": 11,
    "commands": 4,
    "discover": 5,
    "jobs": 4,
    "pages": 7,
    "policy": 8,
    "protocols": 17,
    "running": 6,
    "serve": 40,
    "stores": 7,
    "workflows": 5,
}
"""Files of each room. A new door, protocol, store or list of checks raises its room's figure by one."""
MODULES = sorted(PACKAGE.rglob("*.py"))
DJANGO = ROOT / "contrib" / "awp_publish_django"
PRODUCT = [*MODULES, *sorted((ROOT / "demo_site").rglob("*.py")), *sorted(DJANGO.rglob("*.py"))]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def deferred_in(path: Path) -> frozenset[int]:
    """The nodes that do nothing when a file is imported, by their ids."""
    outer = [node for node in ast.walk(tree_of(path)) if is_deferred(node)]
    return frozenset(id(node) for one in outer for node in ast.walk(one))


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def imports_of(path: Path) -> Iterator[tuple[str, bool]]:
    """Every module a file imports, and whether it does so at import time."""
    for node in ast.walk(tree_of(path)):
        at_once = id(node) not in deferred_in(path)
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_once) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, at_once


def is_deferred(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


def test_arrows_point_inwards():
    wrong = []
    for path in MODULES:
        room = room_of(path)
        allowed = MAY_IMPORT.get(room, {other for other, rank in RANKS.items() if rank <= RANKS[room]})
        for module, _ in imports_of(path):
            if module.startswith("awp_publish.") and (other := module.split(".")[1]) not in allowed | {room}:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {other}")
    assert wrong == []


def test_the_import_graph_has_no_circle_and_few_floors():
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in MODULES}
    arrows: dict[str, set[str]] = {name: set() for name in names.values()}
    for path, name in names.items():
        for imported in modules_imported(path):
            arrows[name] |= {imported} & arrows.keys() - {name}
    floors: dict[str, int] = {}
    for name in TopologicalSorter(arrows).static_order():  # raises CycleError, which tells the circle
        floors[name] = 1 + max((floors[imported] for imported in arrows[name]), default=0)
    highest = max(floors, key=lambda name: floors[name])
    assert floors[highest] <= FLOORS, f"{highest} stands on {floors[highest]} floors"


def modules_imported(path: Path) -> Iterator[str]:
    """What a file imports when it is imported: the modules, and of names that are none the module that has them."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in deferred_in(path):
            for alias in node.names:
                place = ROOT / node.module.replace(".", "/") / alias.name
                is_module = place.with_suffix(".py").exists() or (place / "__init__.py").exists()
                yield f"{node.module}.{alias.name}" if is_module else node.module


def test_a_type_has_a_name_of_its_own():
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_few_private_functions_are_short_and_have_a_single_reference():
    """A private function earns its name by a second caller or by being an idea (CONTRIBUTING.md, the rule)."""
    shallow, functions = [], 0
    for path in MODULES:
        text = path.read_text()
        words = Counter(re.findall(r"[A-Za-z_]\w*", text))
        for node in ast.walk(tree_of(path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions += 1
                is_private = node.name.startswith("_") and not node.name.startswith("__")
                is_short = (node.end_lineno or node.lineno) - node.lineno + 1 < 12
                if is_private and is_short and words[node.name] == 2:
                    shallow.append(f"{path.relative_to(PACKAGE)}: {node.name}")
    assert len(shallow) <= functions * 0.12, shallow


def test_every_room_has_a_rank_which_the_page_about_the_house_shows():
    assert {room_of(path) for path in MODULES} <= set(RANKS)
    rows = re.findall(r"^\| (\d) \| (.+?) \|", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    shown = {room: int(rank) for rank, rooms in rows for room in re.findall(r"`(\w+)`", rooms)}
    assert shown == {room: rank for room, rank in RANKS.items() if room not in ("", "__main__")} | {"demo_site": 6}


def test_no_room_has_more_files_than_it_needs():
    folders = Counter("" if path.parent == PACKAGE else path.relative_to(PACKAGE).parts[0] for path in MODULES)
    assert folders.keys() == MOST_MODULES.keys()
    assert {room: count for room, count in folders.items() if count > MOST_MODULES[room]} == {}


def test_extras_are_imported_only_where_they_are_the_subject():
    wrong = []
    for path in MODULES:
        subjects = {part.removesuffix(".py").partition("_")[0] for part in path.relative_to(PACKAGE).parts}
        for module, at_once in imports_of(path):
            name = module.split(".")[0]
            if name in EXTRAS and at_once and SUBJECTS.get(name, name.partition("_")[0]) not in subjects:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name} when it is imported itself")
    assert wrong == []


def test_only_serve_knows_asgi_and_only_invoke_calls_handlers():
    for path in MODULES:
        text = path.read_text()
        if room_of(path) != "serve":
            assert "http.response" not in text, path
        if room_of(path) not in ("invoke", "discover", "resolve"):
            assert ".function(" not in text, path


def test_importing_the_package_needs_no_extra_and_starts_nothing():
    script = (
        "import sys, asyncio, threading, logging\n"
        f"hidden = {sorted(EXTRAS)!r}\n"
        "sys.modules.update(dict.fromkeys(hidden))\n"
        "import awp_publish, awp_publish.checks, awp_publish.plugins.templating\n"
        "assert threading.active_count() == 1\n"
        "assert not logging.getLogger().handlers and not logging.getLogger('awp_publish').handlers\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True, cwd=ROOT)


def test_file_names_say_something():
    assert [path for path in PRODUCT if path.stem in SAYS_NOTHING] == []


def test_public_names_are_few_and_documented():
    import awp_publish

    names = {name for name in vars(awp_publish) if name.isidentifier() and not name.startswith("_")} - {
        path.stem for path in PACKAGE.iterdir()
    }
    assert names == {
        "About",
        "AgentPublisher",
        "ApiKey",
        "ApplicationUser",
        "Attachment",
        "BearerToken",
        "Browsing",
        "Credentials",
        "DeclarationError",
        "Idempotency",
        "Import",
        "Jobs",
        "JwtBearer",
        "Locator",
        "OAuth",
        "PageCheck",
        "Pages",
        "Paths",
        "Principal",
        "Problem",
        "Projection",
        "Proxies",
        "Records",
        "Robots",
        "Refused",
        "Security",
        "SessionUser",
        "SharedSecret",
        "Signal",
        "Site",
        "State",
        "Traffic",
        "Transition",
        "Value",
        "WebBotAuth",
        "Workflow",
        "current_caller",
        "report_progress",
    }
    assert all(getattr(awp_publish, name).__doc__ for name in names)


PRIVATE = re.compile(r"(?<![\w.])/(?:work|root)/|\b(?:pypi|pythonhosted)\.org\b")
"""Absolute paths of a machine, and hosts of package registries."""


def test_nothing_of_this_machine_is_in_the_project():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    for name in listed:
        path = ROOT / name
        if path.is_file() and path.suffix not in (".png", ".db"):
            text = path.read_text(errors="ignore")
            assert PRIVATE.search(text) is None, name
