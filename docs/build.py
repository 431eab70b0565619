"""The documentation as a site: `make site`. Its pages and their order are in mkdocs.yml; what is made stands in build/.

To the pages come the README as the first one, a reference from the docstrings of the public names, the Markdown of each
page beside its HTML, and llms.txt.
"""

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import awp_publish
from awp_publish import Site, client
from awp_publish.plugin import installed

ROOT: Final = Path(__file__).parents[1]
BUILD: Final = ROOT / "build"
LINK: Final = re.compile(r"(?<!!)\[([^\]\n]+)\]\((?!https?:|#)([^)#\n]+)(#[^)\n]*)?\)")


def public_names() -> list[tuple[str, object]]:
    """Everything that applications import, by its name."""
    own = [(name, one) for name, one in vars(awp_publish).items() if not name.startswith("_") and callable(one)]
    ours = [(name, one) for name, one in own if getattr(one, "__module__", "").startswith("awp_publish")]
    listed = [("client.AgentClient", client.AgentClient), ("client.CallFailed", client.CallFailed)]
    return [*sorted(ours, key=lambda pair: pair[0].lower()), *listed]


def write_reference() -> str:
    """The reference as Markdown: each public name with its signature and docstring, and its public methods."""
    lines = ["# Reference", "", "Made from the docstrings of what applications import.", ""]
    for name, one in public_names():
        lines += [f"## {name}", "", *_described(name.rpartition(".")[2], one)]
        if inspect.isclass(one):
            of_plugins = {name: verb for plugin in installed().values() for name, verb in plugin.declares.items()}
            for method, function in {**vars(one), **(of_plugins if one is Site else {})}.items():
                if not method.startswith("_") and inspect.isfunction(function) and function.__doc__:
                    lines += [f"### {name}.{method}", "", *_described(method, function)]
    return "\n".join(lines)


def _described(name: str, one: Any) -> list[str]:
    try:
        signature = str(inspect.signature(one))
    except (TypeError, ValueError):
        signature = ""
    text = re.sub(r" at 0x[0-9a-f]+", "", f"{name}{signature}")
    return ["```py", text, "```", "", inspect.getdoc(one) or "", ""]


def gather(folder: Path) -> None:
    """Put all sources of the site into a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    readme = (ROOT / "README.md").read_text().replace("](docs/", "](")
    for page, text in [(folder / "index.md", readme)] + [(one, one.read_text()) for one in folder.glob("*.md")]:
        # A link to a file that is no page of the site becomes its words.
        page.write_text(LINK.sub(lambda one: one[0] if (folder / one[2]).is_file() else one[1], text))
    (folder / "reference.md").write_text(write_reference())


def finish(folder: Path, site: Path) -> None:
    """Put the Markdown of each page beside it, and the list of all into llms.txt."""
    lines = ["# awp_publish", "", "> Documentation. Each page is Markdown at the address given.", ""]
    for page in sorted(folder.glob("*.md")):
        shutil.copy(page, site / page.name)
        title = next((line[2:] for line in page.read_text().splitlines() if line.startswith("# ")), page.stem)
        lines.append(f"- [{title}]({page.name})")
    (site / "llms.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    gather(BUILD / "docs")
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--clean", "--quiet"], cwd=ROOT, check=True)
    finish(BUILD / "docs", BUILD / "site")
    print(f"The site is in {BUILD / 'site'}.")
