"""A bill of materials for the wheel (PEP 770): what pyproject.toml says that it needs, as CycloneDX 1.6. No network."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NOT_SHIPPED = ("all", "demo", "test", "site", "bench")
"""Extras that repeat others, or that nobody installs who uses the package."""


class CustomBuildHook(BuildHookInterface[Any]):
    """Adds the bill of materials to each wheel that is installed as it is."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file where hatchling finds it; it is called the same in every build."""
        if version != "standard":
            return
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name, f"{self.metadata.core.name}.cdx.json")
        path.write_text(json.dumps(self._bill(), indent=2) + "\n")
        build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        if version == "standard":
            self._folder.cleanup()

    def _bill(self) -> dict[str, Any]:
        core = self.metadata.core
        own: dict[str, Any] = {"type": "library", "bom-ref": core.name, "name": core.name}
        own |= {"version": self.metadata.version}
        own |= {"description": core.description, "licenses": [{"expression": core.license_expression}]}
        own |= {"purl": f"pkg:pypi/{core.name}@{self.metadata.version}"}
        components: dict[str, dict[str, Any]] = {}
        for extra, requirement in self._requirements():
            name = canonicalize_name(requirement.name)
            found = components.setdefault(name, _component(name, is_required=not extra))
            found["properties"].append({"name": "python:requirement", "value": str(requirement)})
            if extra:
                found["properties"].append({"name": "python:extra", "value": extra})
        listed = [components[name] for name in sorted(components)]
        dependencies = [{"ref": core.name, "dependsOn": [component["bom-ref"] for component in listed]}]
        return {
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {"component": own},
            "components": listed,
            "dependencies": [*dependencies, *({"ref": component["bom-ref"]} for component in listed)],
        }

    def _requirements(self) -> Iterator[tuple[str, Requirement]]:
        """Every requirement, with the extra that has it, "" for what is always needed."""
        core = self.metadata.core
        groups = {"": core.dependencies, **core.optional_dependencies}
        for extra in sorted(groups.keys() - set(NOT_SHIPPED)):
            for text in groups[extra]:
                requirement = Requirement(text)
                if canonicalize_name(requirement.name) != canonicalize_name(core.name):
                    yield extra, requirement


def _component(name: str, *, is_required: bool) -> dict[str, Any]:
    scope = "required" if is_required else "optional"
    return {
        "type": "library",
        "bom-ref": name,
        "name": name,
        "scope": scope,
        "purl": f"pkg:pypi/{name}",
        "properties": [],
    }
