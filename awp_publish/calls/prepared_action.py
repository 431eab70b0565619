"""What calls of an action need that depends only on the action."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.calls.call import RawHeaders
from awp_publish.calls.gates.gate import Facts, Guards
from awp_publish.calls.guard import Guard, guard_of
from awp_publish.calls.header_inputs import HeaderInput, header_inputs
from awp_publish.calls.hooks import Accept, CallHooks, Handle, Reach, Routes
from awp_publish.model import Action
from awp_publish.problems import DeclarationError
from awp_publish.schema import UnusableSchema, Validator, compile_schema, media

_OF_ANY_TEXT: Final = frozenset({"type", "title", "description", "contentMediaType", "contentEncoding"})
"""Members of a schema that refuse no text."""


@dataclass(frozen=True, slots=True)
class PreparedAction:
    """Everything about calls that depends only on the action.

    A `function` takes the input of a call; without one, `reach` takes the call. `accept` is set for background actions.
    `content` is the header of an answer that is declared as base64-encoded media. `headers` are inputs that may be
    taken from the caller's own request. `takes_any_text` is set if every text and every file is a valid answer.
    """

    action: Action
    inputs: Validator
    outputs: Validator
    guard: Guard | None
    function: Handle | None
    reach: Reach
    accept: Accept | None
    content: RawHeaders
    headers: tuple[HeaderInput, ...]
    takes_any_text: bool


def prepare_action(action: Action, guards: Guards | None, routes: Routes, hooks: Sequence[CallHooks]) -> PreparedAction:
    """Prepare the calls of one action. Raises DeclarationError for a schema that cannot be used."""
    try:
        inputs, outputs = compile_schema(action.inputs, asserts_formats=True), compile_schema(action.outputs)
    except UnusableSchema as error:
        remedy = "Declare inputs=... and outputs=... (a model or a JSON Schema)."
        raise DeclarationError(f'action "{action.id}"', f"{error}.", remedy) from error
    guard = None
    if guards is not None:
        guard = guard_of(action, Facts(guards=guards, inputs=inputs, check=routes.check, rehearse=routes.rehearse))
    function: Handle | None = action.function
    reach, accept = routes.call, None
    for hook in hooks:
        if action.id in hook.handlers:
            function, reach = None, hook.handlers[action.id]
        if action.is_background:
            accept = accept or hook.accept
        if hook.around_handler is not None:
            function = None if function is None else hook.around_handler(function)
            reach = hook.around_handler(reach)
    kind = media.declared_type(action.outputs)
    return PreparedAction(
        action,
        inputs,
        outputs,
        guard,
        function,
        reach,
        accept,
        content=(media.write_header(kind),) if kind else (),
        headers=header_inputs(action),
        takes_any_text=action.outputs.get("type", "string") == "string" and _OF_ANY_TEXT.issuperset(action.outputs),
    )
