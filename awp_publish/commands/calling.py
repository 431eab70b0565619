"""`awp-publish call`: one action, through any door; what is missing is asked for, and so is a person's consent."""

import json
import sys
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from typing import Any, Final

import orjson

from awp_publish.client import AgentClient, CallFailed, Door
from awp_publish.commands.application import Application, is_application, load
from awp_publish.commands.console import Console, ask, is_asking
from awp_publish.problems import DeclarationError
from awp_publish.schema import compile_schema, is_secret

WOA: Final = "/.well-known/woa.json"


def call(
    console: Console,
    target: str,
    action: str,
    pairs: Sequence[str],
    *,
    given: str = "{}",
    door: Door = "woa",
    token: str | None = None,
    headers: Sequence[str] = (),
    key: str | None = None,
    yes: bool = False,
) -> int:
    """Call an action and print its output. Returns 1 where the site refuses it, and says why on standard error.

    At a terminal, required inputs that are missing are asked for one by one, and a person is shown what they confirm.
    Elsewhere nothing is asked: a confirmation is refused without `yes`.
    """
    fields: dict[str, str] = {}
    for line in headers:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise DeclarationError(f"--header {line}", "is no header.", 'Write --header "Name: value".')
        fields[name.strip()] = value.strip()

    def confirm(summary: str) -> bool:
        print(summary, file=sys.stderr)
        return ask("Is this to be done? [y/N]").lower() in ("y", "yes")

    consent = True if yes else confirm if is_asking() and not console.as_json else None
    app = load(target) if is_application(target) else None
    if app is None and not target.startswith(("http://", "https://")):
        raise DeclarationError(target, "is no application and no address.", "Write module:app, or https://...")
    if app is not None and door in ("mcp", "a2a", "awp") and Application(target).site.catalog.door(door) is None:
        raise DeclarationError(
            f"--door {door}", "is not open there.", f'Write Site(doors=["{door}"]), or another door.'
        )
    try:
        client = AgentClient(target if app is None else app, door=door, token=token, headers=fields, confirm=consent)
        with client:
            schema = _schema_of(client, target, action, is_ours=app is not None)
            inputs = read_inputs(schema, pairs, given)
            if schema is not None and is_asking() and not console.as_json:
                inputs |= _ask_for(schema, inputs)
            answer = client.send(action, inputs, key=key)
    except (ValueError, HTTPException, RuntimeError, OSError) as error:
        raise DeclarationError(target, f"cannot be called: {error}.") from error
    except CallFailed as failed:
        problem = failed.problem
        console.json(problem)
        if not console.as_json:
            code, question = problem.get("code") or problem.get("status") or "failed", problem.get("confirmation")
            lines = [f"awp-publish: {code}: {problem.get('detail', '')}"]
            lines += [f"  {one.get('pointer', '')}: {one.get('detail', '')}" for one in problem.get("errors") or ()]
            lines += [f"  {problem['recovery']}"] if problem.get("recovery") else []
            if isinstance(question, Mapping):
                lines += [f"  {question.get('summary', '')}", "  With --yes it is done."]
            print("\n".join(lines), file=sys.stderr)
        return 1
    if console.as_json:
        output = answer.output.decode("latin-1") if isinstance(answer.output, bytes) else answer.output
        console.json({"output": output, "headers": dict(answer.headers)})
    elif isinstance(answer.output, bytes):
        sys.stdout.buffer.write(answer.output)
    elif isinstance(answer.output, str):
        print(answer.output)
    else:
        print(json.dumps(answer.output, indent=2, ensure_ascii=False))
    return 0


def _schema_of(client: AgentClient, target: str, action: str, *, is_ours: bool) -> Mapping[str, Any] | None:
    """The inputs of an action as the site publishes them; None where it does not, and the site is left to say so."""
    if is_ours:
        catalog = Application(target).site.catalog
        return next((one.inputs for one in catalog.actions if one.id == action), None)
    try:
        document = client.document(WOA)
    except (CallFailed, ValueError):
        return None
    agents = document.get("agents") if isinstance(document, dict) else None
    agent_id, _, operation = action.partition(".")
    for agent in agents if isinstance(agents, list) else ():
        if not isinstance(agent, dict) or agent.get("id") != agent_id:
            continue
        operations = agent.get("operations")
        listed = [one for one in operations if isinstance(one, dict)] if isinstance(operations, list) else []
        own = next((one for one in listed if one.get("name") == operation), {})
        found = own.get("inputs") or agent.get("inputs")
        return found if isinstance(found, dict) else None
    return None


def read_inputs(schema: Mapping[str, Any] | None, pairs: Sequence[str], given: str) -> dict[str, Any]:
    """Inputs from one JSON object and `name=value` pairs. Text stays text where text is wanted, else it may be JSON."""
    try:
        inputs = orjson.loads(sys.stdin.buffer.read() if given == "-" else given)
    except ValueError as error:
        raise DeclarationError("--input", f"is no JSON: {error}.", """Write --input '{"name": "value"}'.""") from None
    if not isinstance(inputs, dict):
        raise DeclarationError("--input", "is no JSON object.", """Write --input '{"name": "value"}'.""")
    members = (schema or {}).get("properties") or {}
    for pair in pairs:
        name, is_pair, text = pair.partition("=")
        if not is_pair or not name:
            raise DeclarationError(pair, "is no input.", "Write inputs as name=value.")
        inputs[name] = _value_of(text, _resolved(members.get(name), schema or {}))
    return inputs


def _value_of(text: str, schema: Mapping[str, Any]) -> Any:
    if schema.get("type") == "string":
        return text
    try:
        return orjson.loads(text)
    except ValueError:
        return text


def _resolved(schema: object, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A member's schema, followed through one reference into `$defs`."""
    reference = schema.get("$ref") if isinstance(schema, Mapping) else None
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        schema = (root.get("$defs") or {}).get(reference.removeprefix("#/$defs/"))
    return schema if isinstance(schema, Mapping) else {}


def _ask_for(schema: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for each required input that is missing, until what is written fits its schema."""
    found: dict[str, Any] = {}
    members = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name in inputs:
            continue
        member = _resolved(members.get(name), schema)
        beside = (members.get(name) or {}).get("description") or member.get("description") or ""
        choices = member.get("enum")
        told = f"one of {', '.join(map(str, choices))}" if isinstance(choices, list) else str(member.get("type") or "")
        question = f"{name}{f' ({told})' if told else ''}{f': {beside}' if beside else ''}\n  >"
        validate = compile_schema({**member, "$defs": schema.get("$defs") or {}}, asserts_formats=True)
        while True:
            value = _value_of(ask(question, secret=is_secret(member)), member)
            wrong = validate(value)
            if not wrong:
                break
            print(f"  It {wrong[0].detail}.", file=sys.stderr)
        found[name] = value
    return found
