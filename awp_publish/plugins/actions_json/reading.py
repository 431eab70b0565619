"""Reading a map: the document is checked, and its imports are included, before a runtime runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from awp_publish.checks.engine import Finding
from awp_publish.checks.text import read as read_document
from awp_publish.maps.composed import ComposedMap
from awp_publish.maps.composition import Load, compose
from awp_publish.plugins.actions_json.checks.imports import import_finding
from awp_publish.plugins.actions_json.checks.lenient import check_map, without_unusable_tools


class ActionMap(ComposedMap):
    """A map that was read and checked (`read`), with its imports included (`composed`)."""

    __slots__ = ()

    findings: Sequence[Finding]

    @classmethod
    def read(cls, document: bytes | str | Mapping[str, object], *, path: str = "", lenient: bool = False) -> ActionMap:
        """Read and check a map. Its imports are not included; `composed` does that.

        A `lenient` reader leaves out tools with mistakes, with a warning for each, in place of refusing the map.
        """
        reading = read_document(document)
        findings = check_map(reading, path, lenient=lenient)
        is_valid = not any(finding.level == "error" for finding in findings)
        if not is_valid or reading.document is None:
            return cls({}, findings)
        return cls(without_unusable_tools(reading.document, findings), findings)

    def composed(self, load: Load, address: str = "") -> ActionMap:
        """Return the map with its imports included, and a finding for each import that could not be included."""
        if not self.is_valid:
            return self
        whole = compose(self.document, address, load)
        findings = [*self.findings, *map(import_finding, whole.problems)]
        return ActionMap(whole.document, findings, frozenset(whole.private), frozenset(whole.foreign))
