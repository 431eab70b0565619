"""Judge what pip-audit has found: `audit.py report.json` fails where a version mends it that may be installed.

It may be if everything that is installed admits it, and we ourselves. Advisories without such a version are printed:
there is nothing to be done here but to read them.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name


def bounds() -> Mapping[str, SpecifierSet]:
    """What installed distributions admit of each other; extras count, since the tests install all of ours."""
    found: dict[str, SpecifierSet] = {}
    for distribution in distributions():
        for text in distribution.requires or ():
            requirement = Requirement(text)
            is_extra = requirement.marker is not None and "extra" in str(requirement.marker)
            if not is_extra or distribution.name == "awp-publish":
                name = canonicalize_name(requirement.name)
                found[name] = found.get(name, SpecifierSet()) & requirement.specifier
    return found


def judge(report: Mapping[str, Any], admitted: Mapping[str, SpecifierSet]) -> Iterator[tuple[bool, str]]:
    """Each advisory: whether it can be mended, and words."""
    for dependency in report["dependencies"]:
        for advisory in dependency.get("vulns", ()):
            allowed = admitted.get(canonicalize_name(dependency["name"]), SpecifierSet())
            fixes = [version for version in advisory["fix_versions"] if allowed.contains(version, prereleases=True)]
            told = f"{dependency['name']} {dependency['version']}: {advisory['id']}"
            yield (
                bool(fixes),
                f"{told}: install {fixes[0]}." if fixes else f"{told}: no version that we admit mends it.",
            )


def main(path: str) -> int:
    """Print all advisories of a report; 1 if one of them can be mended."""
    report = json.loads(Path(path).read_text())
    looked_at = sum("vulns" in dependency for dependency in report["dependencies"])
    if not looked_at:  # a mirror that has packages, and nothing to say about them
        print("NOT RUN: the audit of dependencies. The source of advisories knows none of them.")
        return 0
    found = list(judge(report, bounds()))
    for is_mendable, words in found:
        print(f"{'FAILED' if is_mendable else 'KNOWN'} {words}")
    print(f"{looked_at} of {len(report['dependencies'])} distributions audited, {len(found)} advisories")
    return any(is_mendable for is_mendable, _ in found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
