"""The command `call`."""

import json
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from typing import Any

from awp_publish.calls.wire import Wire
from awp_publish.cli.application import Application, is_application, load
from awp_publish.cli.console import Console, ask, is_asking, warn, write
from awp_publish.client import AgentClient, CallFailed, doors
from awp_publish.documents.members import WOA_PATH
from awp_publish.plugin import DeclaredSite, wires_of
from awp_publish.problems import DeclarationError
from awp_publish.schema import compile_schema, is_secret
from awp_publish.schema.reading import members, resolved


def call(console: Console, options: Namespace) -> int:
    """Call an action and print its output. If the site refuses, prints the reason on standard error and returns 1.

    At a terminal, missing required inputs and confirmations are asked for. Elsewhere nothing is asked, and a call that
    needs confirmation is refused without `--yes`.
    """
    target, action, door = options.target, options.action, options.door
    fields: dict[str, str] = {}
    for line in options.header:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise DeclarationError(f"--header {line}", "is not a header.", 'Write --header "Name: value".')
        fields[name.strip()] = value.strip()

    def confirm(summary: str) -> bool:
        write("  " + summary.replace("\n", "\n  "), is_block=True, to=sys.stderr)
        return ask("Do this? [y/N]").lower() in ("y", "yes")

    consent = True if options.yes else confirm if is_asking() and not console.as_json else None
    app = load(target) if is_application(target) else None
    if app is None and not target.startswith(("http://", "https://")):
        raise DeclarationError(target, "is neither an application nor an address.", "Write module:app, or https://...")
    site = Application(target).declared if app is not None else None
    wire = _wire_of(door, site)
    try:
        reached = target if app is None else app
        with AgentClient(reached, door=wire, token=options.token, headers=fields, confirm=consent) as client:
            if site is not None:
                with suppress(CallFailed, ValueError):
                    client.document("/agent.json")  # the application runs now, and the site is published
                catalog = site.catalog
                if wire is not None and wire.path_of(catalog) is None:
                    remedy = f'Write Site(plugins=["{wire.door}"]), or use another door.'
                    raise DeclarationError(f"--door {door}", "is not open.", remedy)
                schema = next((declared.inputs for declared in catalog.actions if declared.id == action), None)
            else:
                schema = _schema_at(client, action)
            inputs = read_inputs(schema, options.given, options.input)
            if schema is not None and is_asking() and not console.as_json:
                inputs |= _ask_for(schema, inputs)
            answer = client.send(action, inputs, key=options.key)
    except (ValueError, HTTPException, RuntimeError, OSError) as error:
        raise DeclarationError(target, f"cannot be called: {str(error).rstrip('.')}.") from error
    except CallFailed as failed:
        problem = failed.problem
        console.json(problem)
        if not console.as_json:
            code, question = problem.get("code") or problem.get("status") or "failed", problem.get("confirmation")
            lines = [f"awp-publish: {code}: {problem.get('detail', '')}"]
            errors = problem.get("errors")
            for violation in errors if isinstance(errors, list) else ():
                if isinstance(violation, Mapping):
                    lines.append(f"  {violation.get('pointer', '')}: {violation.get('detail', '')}")
            lines += [f"  {problem['recovery']}"] if problem.get("recovery") else []
            if isinstance(question, Mapping):
                lines += [f"  {question.get('summary', '')}", "  Use --yes to confirm."]
            for line in lines:
                write(line, to=sys.stderr)
        return 1
    if console.as_json:
        output = answer.output.decode("latin-1") if isinstance(answer.output, bytes) else answer.output
        console.json({"output": output, "headers": dict(answer.headers)})
    elif isinstance(answer.output, bytes):
        if sys.stdout.isatty():
            warn(f"The output is a file of {len(answer.output)} bytes: redirect it, as in > file.")
            return 1
        sys.stdout.buffer.write(answer.output)
    elif isinstance(answer.output, str):
        write(answer.output, is_block=True)
    else:
        write(json.dumps(answer.output, indent=2, ensure_ascii=False), is_block=True)
    return 0


def _wire_of(door: str | None, site: DeclaredSite | None) -> Wire | None:
    if door is None:
        return None  # the client takes the first that the site names
    listed = {**doors(), **(wires_of(setup.plugin for setup in site.plugins.values()) if site is not None else {})}
    if door not in listed:
        raise DeclarationError(f"--door {door}", "is unknown.", f"There are: {', '.join(listed)}.")
    return listed[door]


def _schema_at(client: AgentClient, action: str) -> Mapping[str, Any] | None:
    """Return the published inputs of an action, None if there are none; the site then decides about the call."""
    try:
        document = client.document(WOA_PATH)
    except (CallFailed, ValueError):
        return None
    agents = document.get("agents") if isinstance(document, dict) else None
    agent_id, _, operation = action.partition(".")
    for agent in agents if isinstance(agents, list) else ():
        if not isinstance(agent, dict) or agent.get("id") != agent_id:
            continue
        operations = agent.get("operations")
        listed = [entry for entry in operations if isinstance(entry, dict)] if isinstance(operations, list) else []
        own = next((entry for entry in listed if entry.get("name") == operation), {})
        inputs = own.get("inputs") or agent.get("inputs")
        return inputs if isinstance(inputs, dict) else None
    return None


def read_inputs(schema: Mapping[str, Any] | None, pairs: Sequence[str], inputs_json: str) -> dict[str, Any]:
    """Return inputs from a JSON object and `name=value` pairs.

    Values are JSON if possible, unless the input is a text. A repeated name is a list, as is one whose input is a list.
    """
    try:
        inputs = _read_json(sys.stdin.buffer.read() if inputs_json == "-" else inputs_json)
    except (ValueError, RecursionError) as error:
        raise DeclarationError("--input", f"is not JSON: {error}.", """Write --input '{"name": "value"}'.""") from None
    if not isinstance(inputs, dict):
        raise DeclarationError("--input", "is not a JSON object.", """Write --input '{"name": "value"}'.""")
    texts: dict[str, list[str]] = {}
    for pair in pairs:
        name, is_pair, text = pair.partition("=")
        if not is_pair or not name:
            raise DeclarationError(pair, "is not an input.", "Write inputs as name=value.")
        texts.setdefault(name, []).append(text)
    for name, listed in texts.items():
        member = resolved(members(schema or {}).get(name), schema or {})
        if len(listed) > 1 or (member.get("type") == "array" and not listed[0].lstrip().startswith("[")):
            item = resolved(member.get("items"), schema or {})
            inputs[name] = [_value_of(text, item) for text in listed]
        else:
            inputs[name] = _value_of(listed[0], member)
    return inputs


def _value_of(text: str, schema: Mapping[str, Any]) -> Any:
    if schema.get("type") == "string":
        return text
    try:
        return _read_json(text)
    except (ValueError, RecursionError):
        return text


def _read_json(text: str | bytes) -> Any:
    """Parse JSON. Numbers beyond 64 bits, which orjson would round, go as they are to the site, which refuses them."""
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _ask_for(schema: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for each missing required input until the answer fits its schema."""
    answers: dict[str, Any] = {}
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if not isinstance(name, str) or name in inputs:
            continue
        member = resolved(members(schema).get(name), schema)
        beside = member.get("description") or ""
        choices = member.get("enum")
        kind = f"one of {', '.join(map(str, choices))}" if isinstance(choices, list) else str(member.get("type") or "")
        question = f"{name}{f' ({kind})' if kind else ''}{f': {beside}' if beside else ''}"
        validate = compile_schema({**member, "$defs": schema.get("$defs") or {}}, asserts_formats=True)
        while True:
            write(question, to=sys.stderr)
            value = _value_of(ask("  >", secret=is_secret(member)), member)
            wrong = validate(value)
            if not wrong:
                break
            write(f"  It {wrong[0].detail}.", to=sys.stderr)
        answers[name] = value
    return answers
