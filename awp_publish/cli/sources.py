"""Source files of somebody else's application, as the command `begin` reads them."""

import ast
import difflib
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from awp_publish.problems import DeclarationError

MAX_BYTES: Final = 1_000_000

LOCAL_URL: Final = "http://127.0.0.1:8000"

MINE: Final = re.compile(r"^\s*(?:from|import)\s+awp_publish|[\"']awp_publish_django", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that is written: its text before, None for a new file, and afterwards."""

    path: Path
    before: str | None
    after: str

    def diff(self) -> str:
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


def refuse_twice(path: Path, text: str) -> None:
    if MINE.search(text):
        raise DeclarationError(
            str(path), "uses awp_publish already.", "awp-publish check module:app tells how it does."
        )


def read_source(path: Path) -> str | None:
    """Return the text of a file, None if there is none that can be read."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def title_of(folder: Path) -> str:
    words = re.sub(r"[^A-Za-z0-9]+", " ", folder.resolve().name if folder.name in ("", ".") else folder.name).strip()
    return words[:1].upper() + words[1:] if words else "My site"


def site_lines(variable: str, name: str, description: str, routes: str) -> list[str]:
    """Return the lines that declare a site for the local trial."""
    first = re.split(r"(?<=[.!?])\s|\n\s*\n", " ".join(description.split()).strip(), maxsplit=1)[0]
    return [
        f"{variable} = Site(",
        f"    name={_quoted(name)},",
        f"    description={_quoted(first or f'{name}: say in a sentence what it is for.')},",
        f'    url=os.environ.get("AWP_PUBLISH_URL") or "{LOCAL_URL}",  # the public address',
        *(['    plugins=["mcp"],'] if find_spec("mcp") is not None else []),
        ")",
        f"{variable}.include()  # the {routes} that only read; @{variable}.action declares others",
    ]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
