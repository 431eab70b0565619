"""The frozen action that a declaration and its route or function make."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from awp_publish.declare.discover.routes import FORM_TYPES, Operation
from awp_publish.declare.implementations import SCHEMA_REMEDY, Implementation, TargetApplication
from awp_publish.declare.settings.actions import ActionSettings
from awp_publish.declare.settings.rates import read_rate
from awp_publish.declare.sign_in import sign_in_of
from awp_publish.model import DEFAULT_OPERATION, Action, ActionType, Effect, Target, title_of
from awp_publish.problems import DeclarationError, end_sentence
from awp_publish.schema import UnusableSchema, compile_schema, in_doubles
from awp_publish.schema.handlers import first_paragraph
from awp_publish.schema.redaction import answer_redactor
from awp_publish.schema.secrets import mark_secrets

BACKGROUND_TIMEOUT: Final = 3600.0
"""Seconds that a background action may take unless its declaration says otherwise."""

EFFECTS: Final[Mapping[str, Effect]] = {
    "GET": "read",
    "PUT": "idempotent",
    "POST": "write",
    "PATCH": "write",
    "DELETE": "delete",
}
"""The semantics of the methods (RFC 9110 section 9.2)."""

_HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+")

_NOT_OF_THE_ANSWER: Final = re.compile(
    r"content-.*|access-control-.*|awp-.*|sec-.*|set-cookie|transfer-encoding|keep-alive|proxy-.*|www-authenticate"
    r"|cache-control|x-request-id|strict-transport-security|idempotent-replayed"
)
"""Headers about the transport, or of ours."""


def make_action(
    subject: str,
    action_id: str,
    description: str,
    options: ActionSettings,
    implementation: Implementation,
    application: TargetApplication,
    operation_name: str = DEFAULT_OPERATION,
    agent_id: str | None = None,
) -> Action:
    """Return the frozen action. What is not declared is derived from its route or function and the `application`.

    `operation_name` is the action's name as an operation of its agent; without `agent_id` the action is its own agent.

    Raises DeclarationError.
    """
    target = implementation.target
    inputs, secret_names = mark_secrets(implementation.operation.inputs)
    outputs = in_doubles(implementation.operation.outputs)
    operation = replace(implementation.operation, inputs=in_doubles(inputs), outputs=outputs)
    answer_headers = _answer_headers(description, operation)
    description = first_paragraph(description) if options.description is None else description
    if implementation.is_deprecated and "deprecated" not in description.lower():
        description = f"Deprecated. {description}"
    is_background = options.execution == "async"
    effect: Effect = options.effect or (EFFECTS[target.method] if target is not None else "write")
    rehearse = cache(implementation.rehearse) if implementation.rehearse is not None else None
    refuses_in_time = not is_background or (rehearse is not None and rehearse() is not None)
    asker, scopes = sign_in_of(subject, options, operation, application, refuses_in_time=refuses_in_time)
    _check_examples(subject, options.examples, operation)
    if is_background and answer_redactor(operation.outputs) is not None:
        refusal = "outputs: have a member with readOnce, which a background job would have to keep until it is fetched."
        raise DeclarationError(subject, refusal, 'Hand it out in an action with execution="sync".')
    return Action(
        id=action_id,
        name=options.name or title_of(action_id),
        description=description,
        inputs=operation.inputs,
        outputs=operation.outputs,
        agent_id=agent_id or action_id,
        operation=operation_name,
        target=target,
        answer_headers=answer_headers,
        secret_names=secret_names,
        function=implementation.function,
        entry=implementation.entry,
        rehearse=rehearse,
        type=_type_of(target, effect),
        effect=effect,
        tags=tuple(options.tags),
        examples=tuple(options.examples),
        asker=asker,
        route_credentials=operation.credentials,
        security=operation.security,
        security_schemes=operation.schemes,
        scopes=scopes,
        rate_limit=read_rate(options.rate_limit) if options.rate_limit is not None else None,
        allow_agents=tuple(dict.fromkeys(options.allow_agents)),
        needs_confirmation=effect == "irreversible",
        depends_on=tuple(dict.fromkeys(options.depends_on)),
        answers_json=operation.answers_json and "contentMediaType" not in operation.outputs,
        enforces_outputs=implementation.enforces_outputs,
        outputs_vary=operation.outputs_vary and not implementation.enforces_outputs,
        guards_route=options.guard_routes,
        execution=options.execution,
        success_status=202 if is_background else operation.success_status,
        timeout=options.timeout or (BACKGROUND_TIMEOUT if is_background else application.timeout),
        max_body_bytes=options.max_body_bytes,
        operation_id=operation.operation_id,
        audience=options.audience,
        expose=None if options.expose is None else frozenset(options.expose),
        extensions=dict(options.extensions),
    )


def _answer_headers(description: str, operation: Operation) -> frozenset[bytes]:
    """Return the headers of the answer that the description or the route names."""
    headers = {name.lower() for name in (*_HEADER.findall(description), *operation.answer_headers)}
    return frozenset(name.encode("latin-1", "replace") for name in headers if not _NOT_OF_THE_ANSWER.fullmatch(name))


def _type_of(target: Target | None, effect: Effect) -> ActionType:
    if target is None:
        return "custom"
    if effect == "read":
        return "data_retrieval"
    return "form_submission" if target.content_type in FORM_TYPES else "state_change"


def _check_examples(subject: str, examples: Iterable[object], operation: Operation) -> None:
    """Raise DeclarationError for an example that the inputs do not take."""
    for index, example in enumerate(examples):
        try:
            violations = compile_schema(operation.inputs, asserts_formats=True)(example)
        except UnusableSchema as error:
            raise DeclarationError(subject, f"{error}.", SCHEMA_REMEDY) from error
        for violation in violations:
            wrong = f"examples.{index}: {violation.pointer or 'it'} {violation.detail}"
            raise DeclarationError(subject, end_sentence(wrong))
