"""Selecting the skill that a message means, and its input.

A2A 1.0 has no way to select a skill, so a declared extension defines one (docs/a2a.md): a data part `{"skill",
"input"}`, or the skill's id in the metadata and its input as the data part. A text with that JSON counts as the part.
Messages are read from the JSON of the request and not from the SDK's messages, in which every number is a double.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from awp_publish.http.strict_json import parse_json
from awp_publish.model import Action, Catalog, JsonObject
from awp_publish.plugins.a2a.dialect import DIALECT
from awp_publish.plugins.a2a.record import TaskRecord
from awp_publish.problems import (
    InvalidEnvelope,
    InvalidInput,
    NotJson,
    Problem,
    UnknownOperation,
    Violation,
    did_you_mean,
)
from awp_publish.schema.large_numbers import EXACT

MAX_CHOICES: Final = 50
"""Skills that a refusal lists to a caller who names none; the card lists all of them."""

_RECOVERY: Final = (
    'Send a data part {"skill": "<id>", "input": {...}} with the id of a skill of the agent card, and the input that '
    "the card's extension describes."
)


class _SentMessage(NamedTuple):
    """The parts of the JSON of SendMessage: data parts, texts, and the metadata of the message and of the request."""

    data: list[dict[str, object]]
    texts: list[str]
    metadata: dict[str, object]

    @classmethod
    def read(cls, params: object) -> Self:
        """Read the params of 1.0 or 0.3."""
        request: JsonObject = params if isinstance(params, dict) else {}
        sent: Any = request.get("message") or request.get("request")
        message: JsonObject = sent if isinstance(sent, dict) else {}
        parts = message.get("parts") or message.get("content")
        data, texts, metadata = list[dict[str, object]](), list[str](), dict[str, object]()
        for more in (request.get("metadata"), message.get("metadata")):
            metadata |= more if isinstance(more, dict) else {}
        for part in parts if isinstance(parts, list) else ():
            words, content = (part.get("text"), part.get("data")) if isinstance(part, dict) else (None, None)
            if isinstance(words, str):
                texts.append(words)
            if isinstance(content, dict):
                wrapped = content.get("data") if len(content) == 1 else None  # HTTP+JSON of 0.3 wraps data once more
                data.append(wrapped if isinstance(wrapped, dict) else content)
        return cls(data, texts, metadata)


@dataclass(frozen=True, slots=True)
class SkillCall:
    """The call that a message asks for: an action, its input, and the members beside it.

    `objection` is what is wrong with the input of an action that is not public.
    """

    action: Action
    input: JsonObject
    members: JsonObject
    objection: Problem | None = None


class SkillSelector:
    """The skills of one catalog. `absent` is the action as which unknown skills are called, None to refuse at once."""

    def __init__(self, catalog: Catalog, absent: Action | None) -> None:
        self._absent = absent
        self._actions = {action.id: action for action in catalog.actions}
        self._text_inputs: dict[str, str] = {}  # the only required input of an action, if a text can fill it
        for action in catalog.actions:
            properties, required = action.inputs.get("properties"), action.inputs.get("required")
            if isinstance(properties, Mapping) and isinstance(required, (list, tuple)) and len(required) == 1:
                schema = properties.get(required[0])
                is_string = isinstance(schema, Mapping) and schema.get("type") == "string"
                if is_string and not {"enum", "format"} & set(schema or ()):
                    self._text_inputs[action.id] = str(required[0])
        public = [action for action in catalog.actions if action.is_public]
        self._only = public[0] if len(public) == 1 and public[0].id in self._text_inputs else None

    def find(self, skill: str) -> Action | None:
        return self._actions.get(skill)

    def named_skill(self, params: object) -> tuple[str, JsonObject]:
        """Return the skill that a message names in a data part, and its input; "" if there is none."""
        sent = _SentMessage.read(params)
        for data in (*sent.data, *(_read_call(text, None) for text in sent.texts)):
            if data is not None and isinstance(skill := data.get("skill"), str):
                arguments = data.get("input")
                return skill, arguments if isinstance(arguments, dict) else {}
        return "", {}

    def unknown(self, skill: str | None) -> Problem:
        """Return the refusal for an unknown skill, or for a message without one (None)."""
        detail = "The message names no skill." if skill is None else f'There is no skill "{skill[:100]}".'
        listed = [action for action in self._actions.values() if action.is_public]
        if skill is not None and (near := did_you_mean(skill, [action.id for action in listed])):
            detail += f" {near}"
        del listed[MAX_CHOICES:]
        return UnknownOperation(
            f"{detail} There are: {', '.join(action.id for action in listed)}.",
            recovery=_RECOVERY,
            members={"skills": [{"skill": action.id, "description": action.description} for action in listed]},
        )

    def select(self, params: object, before: TaskRecord) -> SkillCall:
        """Return the call that SendMessage (in 1.0 or 0.3) requests. Raises a Problem.

        `before` is the task, which may have named an action before.
        """
        objects, texts, metadata = _SentMessage.read(params)
        if not objects:
            skill_id = metadata.get("skill")
            candidate = self._actions.get(skill_id if isinstance(skill_id, str) else before.skill)
            read = [_read_call(text, candidate) for text in texts]
            objects = [data for data in read if data is not None]
            texts = [text for text, data in zip(texts, read, strict=True) if data is None]
        if len(objects) > 1:
            raise InvalidEnvelope("The message has several data parts, and only one can be the call.")
        for data in objects:
            _restore_integers(data)
        arguments: Any
        members: JsonObject
        if objects and "skill" in metadata and not {"skill", "input"} & objects[0].keys():
            members, arguments = metadata, objects[0]  # the whole data part is the input
        else:
            members = {**metadata, **(objects[0] if objects else {})}
            arguments = members.get("input")

        skill, text, earlier = members.get("skill"), "\n".join(texts).strip(), self._actions.get(before.skill)
        if skill is None:
            action = earlier or (self._only if text else None)
        elif isinstance(skill, str):
            action = self._actions.get(skill, self._absent)
        else:
            raise InvalidEnvelope("skill: must be the id of a skill, a string.")
        if action is None:
            raise self.unknown(skill)
        try:
            return SkillCall(action, self._read_input(action, arguments, text, objects, before), members)
        except Problem as problem:
            if action.is_public:
                raise
            return SkillCall(action, {}, members, problem)

    def _read_input(
        self, action: Action, arguments: object, text: str, objects: Sequence[JsonObject], before: TaskRecord
    ) -> JsonObject:
        """Return the input of a message: from its data, from its text, or from the task."""
        earlier = self._actions.get(before.skill)
        if arguments is None and objects and (misnamed := DIALECT.misnamed(objects[0])):
            raise InvalidEnvelope(f"A data part carries the input of a skill in its member input, not in {misnamed}.")
        # A person's "yes" is not a new input: the message before the last one was a question.
        questions = [part.data.struct_value.fields for message in before.task.history[-2:-1] for part in message.parts]
        is_answer = action is earlier and any("confirmation" in fields for fields in questions)
        if arguments is None and text and action.id in self._text_inputs and not is_answer:
            arguments = {self._text_inputs[action.id]: text}
        elif arguments is None and action is not earlier:
            arguments = {}
        elif arguments is None:
            arguments = before.input
            if arguments is None:
                detail = "The input of this task is not stored: send it again as the member input of the data part."
                again = "Send a message in the same task with a data part that has input and, if given, confirmation."
                raise InvalidInput(detail, recovery=again)
        if not isinstance(arguments, dict):
            detail = "must be an object"
            raise InvalidInput(f"The input {detail}.", errors=[Violation("", detail)])
        return arguments


def _read_call(text: str, action: Action | None) -> dict[str, object] | None:
    """Return the data part that a text consists of, or None for other texts.

    It names its skill, or adds members to the task's; or it is the whole input of the `action` that is already known.
    """
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        data = parse_json(text.encode("utf-8", "replace"))
    except NotJson:
        return None
    if not isinstance(data, dict):
        return None
    if isinstance(data.get("skill"), str) or (action is not None and not _BESIDE.isdisjoint(data)):
        return data
    properties = action.inputs.get("properties") if action is not None else None
    is_input = isinstance(properties, Mapping) and data and data.keys() <= properties.keys()
    return {"input": data} if is_input else None


_BESIDE: Final = frozenset({"input", "confirmation", "receipts"})
"""Members of a data part that add to a task whose skill is known."""


def _restore_integers(data: JsonObject) -> None:
    """Convert whole numbers to integers: protobuf clients can only send 2.0 for 2, and in JSON both are the same."""
    waiting: list[Any] = [data]
    for inside in waiting:  # nested objects and lists are appended
        for key, value in inside.items() if isinstance(inside, dict) else enumerate(inside):
            if isinstance(value, (dict, list)):
                waiting.append(value)
            elif isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
                inside[key] = int(value)
