"""agent.json of the Agent Web Protocol: a site's actions, and how it refuses, in one document."""

from collections.abc import Mapping
from dataclasses import replace

from awp_publish.model import Catalog, JsonObject
from awp_publish.plugin import Plugin, Setup
from awp_publish.plugins.agent_json.document import NAME, PROTOCOL
from awp_publish.plugins.agent_json.options import AgentJson
from awp_publish.problems import DeclarationError
from awp_publish.schema import UnusableSchema, write_schema


def _read_models(setup: Setup) -> Mapping[str, JsonObject]:
    """Return the schemas of entities that are given as types. Raises DeclarationError for one without fields."""
    schemas: dict[str, JsonObject] = {}
    for name, model in setup.options.entities.items():
        if isinstance(model, type):
            try:
                schemas[name] = write_schema(model, "serialization")
            except UnusableSchema as error:
                raise DeclarationError("site", f"plugins.agent_json.entities.{name}: {error}.") from error
            if "properties" not in schemas[name]:
                wrong = f"plugins.agent_json.entities.{name}: {model.__name__} has no fields."
                raise DeclarationError("site", wrong, "Give a model.")
    return schemas


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    tables = {name: fields for name, fields in setup.options.entities.items() if not isinstance(fields, type)}
    return replace(catalog, site=replace(catalog.site, entities=tables, entity_schemas=setup.state))


PLUGIN = Plugin(
    name=NAME, is_default=True, options=AgentJson, start=_read_models, derive=_derive, documents=(PROTOCOL,)
)
