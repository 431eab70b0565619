"""awp_publish as it was before calls were guarded, under another name, so that both can be timed in one process."""

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

REVISION: Final = "6767e88"
"""The last commit without guards."""

NAME: Final = "awp_before"


def load_before() -> ModuleType | None:
    """The package of that commit, renamed; None where its history is not at hand (a shallow clone, an archive)."""
    root = Path(__file__).parents[1]
    packed = subprocess.run(["git", "archive", REVISION, "awp_publish"], cwd=root, capture_output=True, check=False)
    if packed.returncode != 0:
        return None
    folder = Path(mkdtemp(prefix="awp_before"))
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    (folder / "awp_publish").rename(folder / NAME)
    for path in (folder / NAME).rglob("*.py"):
        path.write_text(re.sub(r"\bawp_publish(?=[.\s])", NAME, path.read_text()))
    sys.path.insert(0, str(folder))
    return importlib.import_module(NAME)
