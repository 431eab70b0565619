"""A map as it is run: valid, with its imports included."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from awp_publish.maps import reading
from awp_publish.maps.failures import RuntimeFailure
from awp_publish.maps.older_dialects import translate
from awp_publish.schema import JsonObject, UnusableSchema, Validator, compile_schema


class MapFault(Protocol):
    """A fault of a map: `level` is "error" if readers refuse it. `pointer` is a JSON Pointer into the map."""

    @property
    def level(self) -> str: ...
    @property
    def check(self) -> str: ...
    @property
    def pointer(self) -> str: ...
    @property
    def message(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ComposedMap:
    """A map with its imports included, as it is run. All runtimes of a process share it.

    A map with errors exposes nothing: its `document` is empty, and `findings` say why. `private` are the names of tools
    and projections from an import whose trust is `private`, `foreign` those from an import that is not the site's own.
    """

    document: JsonObject
    findings: Sequence[MapFault] = ()
    private: frozenset[str] = frozenset()
    foreign: frozenset[str] = frozenset()
    _validators: dict[str, Validator | None] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_valid(self) -> bool:
        """False for a map with errors, which readers refuse."""
        return not any(finding.level == "error" for finding in self.findings)

    def objects(self, section: str) -> Sequence[JsonObject]:
        """Return the objects of a section of the root: `tools`, `states`."""
        return reading.objects(self.document, section)

    def find(self, section: str, name: str, member: str = "name") -> JsonObject | None:
        """Return the first object of a section with this name."""
        return next((item for item in self.objects(section) if item.get(member) == name), None)

    def validator(self, key: str, schema: object) -> Validator | None:
        """Return the validator of a schema, compiled when it is first needed; `key` identifies the schema.

        Raises RuntimeFailure for an unusable schema, such as one with references outside of itself.
        """
        if key not in self._validators:
            if not isinstance(schema, Mapping) or not schema:
                return None
            plain = {name: value for name, value in translate(schema).items() if name != "$schema"}
            try:
                self._validators[key] = compile_schema(plain)
            except UnusableSchema as error:
                message = f"The schema of {key} cannot be used here: {error}."
                raise RuntimeFailure("runtime_not_ready", message, recoverable=False) from error
        return self._validators[key]
