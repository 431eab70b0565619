"""`@site.prompt(...)`: texts that people pick, fill in and give to a model of their own (MCP calls them prompts).

A prompt is a plain function. Its parameters are what a person fills in, each a word or a number. It returns a text, or
a list of (role, text) pairs for a conversation that has begun, in which a role is "user" or "assistant".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from awp_publish.describe import title_of
from awp_publish.discover.functions import describe_function
from awp_publish.discover.routes import docstring_of
from awp_publish.model import JsonObject, Prompt, PromptArgument
from awp_publish.options import check_identifier
from awp_publish.problems import DeclarationError
from awp_publish.schema import UnusableSchema

F = TypeVar("F", bound=Callable[..., Any])

_FILLABLE: Final = frozenset({"string", "integer", "number", "boolean", "null"})
_REMEDY: Final = "Annotate each parameter with str, int, float, bool, an Enum or a Literal."


@dataclass(frozen=True, slots=True)
class _Declared:
    subject: str
    id: str
    title: str | None
    description: str | None
    function: Callable[..., object]


class Prompts:
    """The prompts of one site, as they are declared."""

    def __init__(self) -> None:
        self._declared: dict[str, _Declared] = {}

    def declare(self, prompt_id: str, title: str | None, description: str | None) -> Callable[[F], F]:
        """A decorator that notes a function, and returns it unchanged. Raises DeclarationError."""
        if callable(prompt_id):
            raise DeclarationError("site.prompt", 'needs an id: write @site.prompt("its_id").')
        subject = f'prompt "{prompt_id}"'
        check_identifier(subject, prompt_id)
        for name, given in {"title": title, "description": description}.items():
            if given is not None and not (isinstance(given, str) and given.strip()):
                raise DeclarationError(subject, f"{name}: has to be a text that is not empty.")

        def mark(function: F) -> F:
            self._add(_Declared(subject, prompt_id, title, description, function))
            return function

        return mark

    def _add(self, declared: _Declared) -> None:
        if not callable(declared.function):
            raise DeclarationError(declared.subject, f"decorates {declared.function!r}, which is not a function.")
        if declared.id in self._declared:
            raise DeclarationError(declared.subject, "is declared twice.", "Give one of the two another id.")
        self._declared[declared.id] = declared

    def resolve(self) -> tuple[Prompt, ...]:
        """All prompts, in the order of their declaration. Raises DeclarationError."""
        return tuple(_resolve(declared) for declared in self._declared.values())


def _resolve(declared: _Declared) -> Prompt:
    try:
        described = describe_function(declared.function)
    except UnusableSchema as error:
        raise DeclarationError(declared.subject, f"{error}.", _REMEDY) from error
    return Prompt(
        id=declared.id,
        name=declared.title or title_of(declared.id),
        description=declared.description or docstring_of(declared.function),
        arguments=_arguments(declared.subject, described.inputs),
        write=described.call,
    )


def _arguments(subject: str, inputs: JsonObject) -> tuple[PromptArgument, ...]:
    properties, required = inputs.get("properties", {}), inputs.get("required", [])
    assert isinstance(properties, Mapping)
    assert isinstance(required, list)
    for name, schema in properties.items():
        if not _is_fillable(schema, inputs):
            raise DeclarationError(subject, f"its parameter {name} cannot be filled in as a text.", _REMEDY)
    return tuple(
        PromptArgument(name, schema.get("description"), name in required) for name, schema in properties.items()
    )


def _is_fillable(schema: Mapping[str, Any], inputs: JsonObject) -> bool:
    """Whether values of a schema can be read from a text, which is all that MCP sends."""
    if "$ref" in schema:
        definitions: Any = inputs.get("$defs", {})
        return _is_fillable(definitions[schema["$ref"].rpartition("/")[2]], inputs)
    if "anyOf" in schema:
        return all(_is_fillable(one, inputs) for one in schema["anyOf"])
    return "enum" in schema or "const" in schema or schema.get("type") in _FILLABLE
