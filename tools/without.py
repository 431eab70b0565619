"""The core's tests, without the slow ones, in a copy of the project from which folders of `plugins/` are taken out.

`python -m tools.without` takes out all of them at once, `python -m tools.without mcp jobs` each of these alone, and
`--each` every one alone.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
PLUGINS = sorted(path.parent.name for path in (ROOT / "awp_publish" / "plugins").glob("*/__init__.py"))
ROOMS = ("model", "schema", "stores", "documents", "declare", "calls", "http", "doors")
NEEDED = ("awp_publish", "contrib", "tests", "tools", "demo_site", "docs", "pyproject.toml", "README.md")


def run_without(plugins: list[str]) -> bool:
    """Run the core's tests without these plug-ins, and return whether they passed."""
    print(f"Without {', '.join(plugins)}:", flush=True)
    with TemporaryDirectory() as folder:
        for name in NEEDED:
            source, target = ROOT / name, Path(folder) / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        for plugin in plugins:
            shutil.rmtree(Path(folder) / "awp_publish" / "plugins" / plugin)
        # A skipped test may leave a loop open.
        shown = ("-r", "fE", "-W", "ignore::pytest.PytestUnraisableExceptionWarning")
        options = ("-m", "not slow", "-n", "auto", "--dist", "worksteal", "-p", "no:cacheprovider", *shown)
        command = [sys.executable, "-m", "pytest", "-q", *options, *(f"tests/{room}" for room in ROOMS)]
        return subprocess.run(command, cwd=folder).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.without", description=__doc__)
    parser.add_argument("plugins", nargs="*", choices=[*PLUGINS, []], metavar="PLUGIN")
    parser.add_argument("--each", action="store_true", help="every plug-in alone")
    options = parser.parse_args()
    alone = PLUGINS if options.each else options.plugins
    results = [run_without(plugins) for plugins in ([[name] for name in alone] or [PLUGINS])]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
