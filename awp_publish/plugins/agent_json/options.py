"""The options of agent.json."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import PlainValidator

from awp_publish.schema.options import Id, strict


def read_entity(value: object) -> object:
    if isinstance(value, type):
        return value
    if isinstance(value, Mapping) and all(isinstance(part, str) for pair in value.items() for part in pair):
        return dict(value)
    raise ValueError('must be a model or a table of its fields and their types, such as {"title": "string"}')


@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class AgentJson:
    """agent.json of the Agent Web Protocol.

    `entities` are the kinds of objects that actions are about: models, or tables of their fields and types, such as
    `{"book": {"title": "string"}}`.
    """

    entities: Mapping[Id, Annotated[type | Mapping[str, str], PlainValidator(read_entity)]] = field(
        default_factory=dict
    )
