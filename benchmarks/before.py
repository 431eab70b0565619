"""awp_publish as it was at an earlier commit, under another name, so that both can be timed in one process."""

import importlib
import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Final

UNGUARDED: Final = "6767e88"
"""The last commit without guards."""

SMALL_PIECES: Final = "3f4021b"
"""The last commit of the many small modules, before a call's way was shortened."""


def load_before(revision: str) -> ModuleType | None:
    """The package of a commit, renamed; None where its history is not at hand (a shallow clone, an archive)."""
    name = f"awp_{revision}"
    root = Path(__file__).parents[1]
    packed = subprocess.run(["git", "archive", revision, "awp_publish"], cwd=root, capture_output=True, check=False)
    if packed.returncode != 0:
        return None
    folder = Path(mkdtemp(prefix="awp_before"))
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    (folder / "awp_publish").rename(folder / name)
    for path in (folder / name).rglob("*.py"):
        path.write_text(re.sub(r"\bawp_publish(?=[.\s])", name, path.read_text()))
    sys.path.insert(0, str(folder))
    return importlib.import_module(name)
