"""`site.prompt(...)`: texts that a person fills in for their own model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from awp_publish.calls.complete import choices_of, read_complete
from awp_publish.model import JsonObject, Prompt, PromptArgument, title_of
from awp_publish.plugin import DeclaredSite
from awp_publish.problems import DeclarationError
from awp_publish.schema import UnusableSchema
from awp_publish.schema.handlers import docstring_of
from awp_publish.schema.options import ID, check

P = TypeVar("P", bound=Callable[..., Any])


_FILLABLE: Final = frozenset({"string", "integer", "number", "boolean", "null"})


_REMEDY: Final = "Annotate each parameter with str, int, float, bool, an Enum or a Literal."


@dataclass(frozen=True, slots=True)
class _DeclaredPrompt:
    subject: str
    id: str
    title: str | None
    description: str | None
    complete: object
    function: Callable[..., object]


class Prompts:
    """The prompts that a site declares."""

    def __init__(self, site: DeclaredSite) -> None:
        self._site = site
        self._declared: dict[str, _DeclaredPrompt] = {}

    def declare(
        self, prompt_id: str, title: str | None, description: str | None, complete: object = None
    ) -> Callable[[P], P]:
        """Return a decorator that declares a function as a prompt and returns it unchanged. Raises DeclarationError."""
        if callable(prompt_id):
            raise DeclarationError("site.prompt", 'needs an id: write @site.prompt("its_id").')
        subject = f'prompt "{prompt_id}"'
        self._site.refuse_when_frozen(subject)
        check(subject, ID, prompt_id, "id")
        for name, value in {"title": title, "description": description}.items():
            if value is not None and not (isinstance(value, str) and value.strip()):
                raise DeclarationError(subject, f"{name}: must be a non-empty text.")

        def mark(function: P) -> P:
            if not callable(function):
                raise DeclarationError(subject, f"decorates {function!r}, which is not a function.")
            if prompt_id in self._declared:
                raise DeclarationError(subject, "is declared twice.", "Give one of the two another id.")
            self._declared[prompt_id] = _DeclaredPrompt(subject, prompt_id, title, description, complete, function)
            return function

        return mark

    def resolve(self) -> tuple[Prompt, ...]:
        """Return all prompts in the order of their declaration; some are actions too. Raises DeclarationError."""
        prompts: list[Prompt] = []
        for declared in self._declared.values():
            try:
                described = self._site.describe_function(declared.function)
            except UnusableSchema as error:
                raise DeclarationError(declared.subject, f"{error}.", _REMEDY) from error
            for name, annotation in described.injected.items():
                wrong = f"its parameter {name} ({annotation}) cannot be entered by a person."
                raise DeclarationError(declared.subject, wrong, "Leave it out; current_caller() says who calls.")
            inputs: Mapping[str, Any] = described.inputs
            arguments = []
            for name, schema in inputs.get("properties", {}).items():
                if not _is_fillable(schema, inputs):
                    raise DeclarationError(
                        declared.subject, f"its parameter {name} cannot be entered as text.", _REMEDY
                    )
                required = name in inputs.get("required", [])
                choices = choices_of(schema, inputs)
                arguments.append(PromptArgument(name, schema.get("description"), required, choices))
            complete = None
            if declared.complete is not None:
                complete = read_complete(declared.subject, declared.complete, [argument.name for argument in arguments])
            prompts.append(
                Prompt(
                    id=declared.id,
                    name=declared.title or title_of(declared.id),
                    description=declared.description or docstring_of(declared.function),
                    arguments=tuple(arguments),
                    write=described.call,
                    complete=complete,
                    action=self._site.action_of(declared.function),
                )
            )
        return tuple(prompts)


def _is_fillable(schema: Mapping[str, Any], inputs: JsonObject) -> bool:
    """Return True if values of a schema can be parsed from text, because MCP sends prompt arguments as text only."""
    if "$ref" in schema:
        definitions: Any = inputs.get("$defs", {})
        return _is_fillable(definitions[schema["$ref"].rpartition("/")[2]], inputs)
    if "anyOf" in schema:
        return all(_is_fillable(part, inputs) for part in schema["anyOf"])
    return "enum" in schema or "const" in schema or schema.get("type") in _FILLABLE
