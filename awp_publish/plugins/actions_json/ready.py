"""`runtime_ready`: what a runtime says of itself when it connects (Actions Bridge Protocol)."""

from dataclasses import dataclass
from typing import Self

from awp_publish.model import JsonObject
from awp_publish.plugins.actions_json.document import VERSION
from awp_publish.plugins.actions_json.items import DRIVEN, MAX_URL, invalid, read_text, require_text


@dataclass(frozen=True, slots=True)
class Ready:
    """A valid runtime_ready. `announced` are the names of the tools of its own map."""

    runtime_id: str
    url: str
    title: str
    key: str | None
    authorization_id: str | None
    has_usable_map: bool
    is_driven: bool
    announced: frozenset[str]

    @classmethod
    def read(cls, item: JsonObject) -> Self:
        """Read the members of an item. Raises RuntimeFailure `invalid_input`."""
        for name in ("host", "extension_version"):
            read_text(item, name)
        manifest, capabilities = item.get("manifest"), item.get("capabilities", [])
        if manifest is not None and not isinstance(manifest, dict):
            raise invalid("manifest must be an object.", member="manifest")
        if not isinstance(capabilities, list) or not all(isinstance(name, str) for name in capabilities[:1_000]):
            raise invalid("capabilities must be a list of strings.", member="capabilities")
        version = manifest.get("version") if manifest is not None else None
        is_version = version == VERSION and not isinstance(version, bool)
        return cls(
            runtime_id=require_text(item, "runtime_id"),
            url=require_text(item, "url", MAX_URL),
            title=read_text(item, "title", MAX_URL) or "",
            key=read_text(item, "runtime_key"),
            authorization_id=read_text(item, "authorization_id"),
            has_usable_map=manifest is None or (manifest.get("protocol") == "actions.json" and is_version),
            is_driven=DRIVEN in capabilities,
            announced=frozenset(by_name(manifest.get("tools") if manifest is not None else None)),
        )


def by_name(listed: object) -> dict[str, JsonObject]:
    """Return the objects of a list by their names."""
    objects = listed if isinstance(listed, list) else []
    return {str(item["name"]): item for item in objects if isinstance(item, dict) and isinstance(item.get("name"), str)}
