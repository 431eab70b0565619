"""The house holds: who imports whom, what is imported when, what a name says."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "awp_publish"

RANKS = {
    "announced": 0,
    "model": 0,
    "problems": 0,
    "schema": 1,
    "stores": 1,
    "pages": 1,
    "browsing": 1,
    "maps": 1,
    "documents": 2,
    "checks": 2,
    "calls": 3,
    "plugin": 4,
    "declare": 5,
    "http": 6,
    "plugins": 7,
    "cli": 8,
    "client": 8,
    "__main__": 8,
    "": 8,
}
ENGINES = {"pages", "browsing", "maps"}
PLUGIN_MAY = {
    "plugin",
    "model",
    "problems",
    "schema",
    "stores",
    "documents",
    "calls",
    "http",
    "checks",
    *ENGINES,
}
PLUGIN_MAY_NOT = {"http.asgi"}
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
MODULES = sorted(PACKAGE.rglob("*.py"))
DJANGO = ROOT / "contrib" / "awp_publish_django"
PRODUCT = [*MODULES, *sorted((ROOT / "demo_site").rglob("*.py")), *sorted(DJANGO.rglob("*.py"))]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def room_of(module: str) -> str:
    """The room of a module; each plug-in is a room of its own."""
    parts = module.split(".")[1:]
    if not parts:
        return ""
    return ".".join(parts[:2]) if parts[0] == "plugins" and len(parts) > 1 else parts[0]


NAMES = {name_of(path): path for path in MODULES}


@cache
def imports_of(path: Path) -> Sequence[tuple[str, bool]]:
    """Every module a file imports, and whether it does so at import time."""
    found = list[tuple[str, bool]]()
    nodes: list[tuple[ast.AST, bool]] = [(tree_of(path), True)]
    for node, at_once in nodes:
        if isinstance(node, ast.Import):
            found += ((alias.name, at_once) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = [(f"{node.module}.{alias.name}", node.module) for alias in node.names]
            found += ((name if name in NAMES else module, at_once) for name, module in full)
        elif not isinstance(node, ast.expr):
            nodes += ((child, at_once and not is_deferred(node)) for child in ast.iter_child_nodes(node))
    return found


def is_deferred(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


@cache
def arrows() -> dict[str, set[str]]:
    """The modules of the package that each of its modules imports: at once, later, or for the type checker alone."""
    return {name: {one for one, _ in imports_of(path)} & NAMES.keys() - {name} for name, path in NAMES.items()}


def is_allowed(here: str, there: str, target: str) -> bool:
    """Return whether a module of one room may import the module `target` of another."""
    if here.startswith("plugins."):
        return there in PLUGIN_MAY and target.removeprefix("awp_publish.") not in PLUGIN_MAY_NOT
    if here in ENGINES:
        return there in ENGINES | {"schema"}
    if there.startswith("plugins."):
        return RANKS[here] > RANKS["plugins"]
    return RANKS[there] <= RANKS[here]


def test_arrows_point_inwards():
    wrong = [
        f"{module} imports {target}"
        for module, targets in arrows().items()
        for target in sorted(targets)
        if room_of(module) != room_of(target) and not is_allowed(room_of(module), room_of(target), target)
    ]
    assert wrong == []


def test_the_import_graph_has_no_circle():
    tuple(TopologicalSorter(arrows()).static_order())  # raises CycleError, which tells the circle


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
    assert {room_of(name).partition(".")[0] for name in NAMES} <= set(RANKS)
    rows = re.findall(r"^\| (\d) \| (.+?) \|", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    shown = {room: int(rank) for rank, rooms in rows for room in re.findall(r"`(\w+)`", rooms)}
    assert shown == {room: rank for room, rank in RANKS.items() if room not in ("", "__main__")} | {"demo_site": 8}


def test_extras_are_imported_only_where_they_are_the_subject():
    wrong = []
    for path in MODULES:
        subjects = {part.removesuffix(".py").partition("_")[0] for part in path.relative_to(PACKAGE).parts}
        for module, at_once in imports_of(path):
            name = module.split(".")[0]
            if name in EXTRAS and at_once and SUBJECTS.get(name, name.partition("_")[0]) not in subjects:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name} when it is imported itself")
    assert wrong == []


def test_only_doors_know_asgi_and_only_invoke_calls_handlers():
    for name, path in NAMES.items():
        text = path.read_text()
        if room_of(name).partition(".")[0] not in ("http", "doors", "plugins"):
            assert "http.response" not in text, path
        if name != "awp_publish.calls.invoke" and room_of(name) != "declare":
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


def test_names_of_tests_are_statements():
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    ]
    assert len(found) > 3000
    riddle = re.compile(r": test_((what|who|which|where|how)(ever|se)?|of|it|its|they|nor)_")
    assert [name for name in found if riddle.search(name)] == []


def test_public_names_are_few_and_documented():
    import awp_publish

    names = {name for name in dir(awp_publish) if name.isidentifier() and not name.startswith("_")} - {
        path.stem for path in PACKAGE.iterdir()
    }
    assert names == {
        "About",
        "AgentJson",
        "AgentPublisher",
        "ApiKey",
        "ApplicationUser",
        "Approval",
        "BearerToken",
        "Client",
        "Confirmation",
        "Awp",
        "Bridge",
        "Credentials",
        "Custom",
        "DeclarationError",
        "Discovery",
        "Idempotency",
        "Limits",
        "Mcp",
        "Jobs",
        "JwtBearer",
        "OAuth",
        "Overview",
        "Pages",
        "Paths",
        "Principal",
        "Problem",
        "Proxies",
        "Person",
        "Robots",
        "Refused",
        "Security",
        "Search",
        "SessionUser",
        "SignIn",
        "SharedSecret",
        "Site",
        "Traffic",
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
