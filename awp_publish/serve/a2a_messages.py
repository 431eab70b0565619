"""What an A2A message asks for: a skill, its input, and what the gates want to know.

A2A 1.0 has no selector of skills, so a declared extension says (docs/a2a.md): a data part `{"skill", "input"}`, or the
skill's id in the metadata and its input as the data part. Messages are read from the JSON that came in and not from the
SDK's messages, in which every number is a double.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from awp_publish.model import Action, Catalog, JsonObject
from awp_publish.problems import InvalidEnvelope, InvalidInput, Problem, UnknownOperation, Violation

MOST_CHOICES: Final = 50
"""Skills that are named to a caller who has named none; the card names them all."""

EXACT: Final = 2.0**53
"""Doubles are exact up to here: below it a whole one is the integer that its caller meant."""

_RECOVERY: Final = (
    'Send a data part {"skill": "<id>", "input": {...}} with the id of a skill of the agent card, and the input that '
    "the card's extension describes."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a message says. `members` stand beside the input: in the data part, or else in the metadata."""

    skill: str | None = None
    input: object = None
    text: str = ""
    members: JsonObject = field(default_factory=dict)


def read_message(params: object) -> Asked:
    """What the parameters of SendMessage ask for, in 1.0 and in 0.3. Raises InvalidEnvelope."""
    told = _object(params)
    message = _object(told.get("message") or told.get("request"))
    parts = [_object(part) for part in _list(message.get("parts") or message.get("content"))]
    metadata = {**_object(told.get("metadata")), **_object(message.get("metadata"))}
    data = [data for part in parts if (data := _data_of(part)) is not None]
    if len(data) > 1:
        raise InvalidEnvelope("The message has several data parts, and only one can be the call.")
    text = "\n".join(text for part in parts if isinstance(text := part.get("text"), str)).strip()
    return _read_data(data[0] if data else None, metadata, text)


def _read_data(data: JsonObject | None, metadata: JsonObject, text: str) -> Asked:
    """Metadata that names a skill leaves the whole data part to the input, unless that is a whole call itself."""
    if data is not None and "skill" in metadata and not {"skill", "input"} & data.keys():
        return Asked(_skill_of(metadata), data, text, metadata)
    members = {**metadata, **(data or {})}
    return Asked(_skill_of(members), members.get("input"), text, members)


def _skill_of(members: JsonObject) -> str | None:
    skill = members.get("skill")
    if skill is not None and not isinstance(skill, str):
        raise InvalidEnvelope("skill: must be the id of a skill, a string.")
    return skill


def _data_of(part: Mapping[str, object]) -> JsonObject | None:
    """The data of a part; HTTP+JSON of 0.3 wraps it once more."""
    data = part.get("data")
    if isinstance(data, dict) and data.keys() == {"data"} and isinstance(data["data"], dict):
        data = data["data"]
    return {str(name): _with_integers(member) for name, member in data.items()} if isinstance(data, dict) else None


def _with_integers(value: object) -> object:
    """A client of protobuf can only say 2.0 where it means 2; to JSON both are one number."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= EXACT else value
    if isinstance(value, dict):
        return {name: _with_integers(member) for name, member in value.items()}
    return [_with_integers(member) for member in value] if isinstance(value, list) else value


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


# --- Which action that is ---


@dataclass(frozen=True, slots=True)
class Chosen:
    """An action and its input."""

    action: Action
    input: JsonObject


@dataclass(frozen=True, slots=True)
class Before:
    """What a task asked for so far. `input` is None where it was not kept."""

    action: Action
    input: JsonObject | None


class Skills:
    """The skills of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._actions = {action.id: action for action in catalog.actions}
        speaking = [action for action in catalog.actions if only_text_of(action.inputs) is not None]
        self._speaking = speaking[0] if len(speaking) == 1 else None

    def choose(self, asked: Asked, before: Before | None) -> Chosen:
        """The action that is asked for; `before` is what the task asked for so far. Raises a Problem."""
        action = self._find(asked, before)
        if asked.input is not None:
            return Chosen(action, _checked(asked.input))
        goes_on = before is not None and before.action is action
        name = only_text_of(action.inputs)
        if asked.text and name is not None:
            return Chosen(action, {name: asked.text})
        if before is None or not goes_on:
            return Chosen(action, {})
        if before.input is None:
            raise InvalidInput(
                "The input of this task is not kept: send it again, as the member input of the data part."
            )
        return Chosen(action, before.input)

    def find(self, skill: str) -> Action | None:
        """The action with this id."""
        return self._actions.get(skill)

    def _find(self, asked: Asked, before: Before | None) -> Action:
        if asked.skill is not None:
            action = self._actions.get(asked.skill)
            if action is None:
                raise self._unknown(f'There is no skill "{asked.skill[:100]}".')
            return action
        if before is not None:
            return before.action
        if asked.text and self._speaking is not None:
            return self._speaking
        raise self._unknown("The message names no skill.")

    def _unknown(self, detail: str) -> Problem:
        choices = list(self._choices())
        named = ", ".join(str(choice["skill"]) for choice in choices)
        return UnknownOperation(f"{detail} There are: {named}.", recovery=_RECOVERY, members={"skills": choices})

    def _choices(self) -> Iterator[dict[str, object]]:
        for action in list(self._actions.values())[:MOST_CHOICES]:
            yield {"skill": action.id, "description": action.description}


def only_text_of(inputs: JsonObject) -> str | None:
    """The name of the one required input, if it is a string: what a message of text alone can fill."""
    properties, required = inputs.get("properties"), inputs.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, (list, tuple)) or len(required) != 1:
        return None
    name = str(required[0])
    schema = properties.get(name)
    is_text = isinstance(schema, Mapping) and schema.get("type") == "string" and not {"enum", "format"} & schema.keys()
    return name if is_text else None


def _checked(given: object) -> JsonObject:
    if isinstance(given, dict):
        return given
    detail = "must be an object"
    raise InvalidInput(f"The input {detail}.", errors=[Violation("", detail)])
