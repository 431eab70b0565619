"""agent.json: what refers to what. Authentication, dependencies, status and errors all speak about actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from awp_publish.checks.agent_json_shape import SPEC
from awp_publish.checks.finding import Check, Flaw, shown
from awp_publish.checks.pointer import child, objects, strings

Document = Mapping[str, object]
Graph = dict[str, list[tuple[str, str]]]


def _ids(document: Document) -> set[str]:
    return {identifier for _, identifier in strings(document, "/actions/[]/id")}


def _unknown(document: Document, *places: str) -> Iterator[Flaw]:
    known = _ids(document)
    for pointer, name in strings(document, *places):
        if name not in known:
            yield Flaw(pointer, f"No action has the id {shown(name)}.")


def unknown_in_auth(document: Document) -> Iterator[Flaw]:
    """Find names in the authentication contract that no action has."""
    return _unknown(document, "/auth/required_for/[]", "/auth/optional_for/[]")


def unknown_degraded(document: Document) -> Iterator[Flaw]:
    """Find names among the degraded actions that no action has."""
    return _unknown(document, "/agent_status/degraded_actions/[]")


def unknown_dependencies(document: Document) -> Iterator[Flaw]:
    """Find names in the dependencies that no action has, on either side."""
    known, dependencies = _ids(document), document.get("dependencies")
    for name in dependencies if isinstance(dependencies, Mapping) else ():
        if name not in known:
            yield Flaw(child("/dependencies", name), f"No action has the id {shown(name)}.")
    yield from _unknown(document, "/dependencies/{}/[]")


def required_and_optional(document: Document) -> Iterator[Flaw]:
    """Find actions for which authentication is both required and optional."""
    required = {name for _, name in strings(document, "/auth/required_for/[]")}
    for pointer, name in strings(document, "/auth/optional_for/[]"):
        if name in required:
            yield Flaw(pointer, f"Authentication is optional for {shown(name)} here and required in required_for.")


def disagreeing_auth(document: Document) -> Iterator[Flaw]:
    """Find actions whose auth_required says another thing than the authentication contract."""
    auth = document.get("auth")
    if not isinstance(auth, Mapping):
        return
    required = {name for _, name in strings(auth, "/required_for/[]")}
    optional = {name for _, name in strings(auth, "/optional_for/[]")}
    for pointer, action in objects(document, "/actions/[]"):
        said, name = action.get("auth_required"), action.get("id")
        if not isinstance(name, str):
            continue
        place = child(pointer, "auth_required")
        if said is False and name in required:
            yield Flaw(place, f"auth.required_for names {shown(name)}, and auth_required is false.")
        elif said is True and isinstance(auth.get("required_for"), list) and name not in required | optional:
            yield Flaw(place, f"auth_required is true, and auth.required_for does not name {shown(name)}.")
        elif said is True and name in optional - required:
            yield Flaw(place, f"auth_required is true, and auth.optional_for names {shown(name)}.")


def unexplained_auth(document: Document) -> Iterator[Flaw]:
    """Find actions that require authentication in a document that says there is none, or nothing about it.

    An auth section without a type passes: the listed types leave out, for example, cookies of a session.
    """
    auth = document.get("auth")
    if isinstance(auth, Mapping) and auth.get("type") != "none":
        return
    for pointer, action in objects(document, "/actions/[]"):
        if action.get("auth_required") is True:
            said = 'auth.type is "none"' if auth else "there is no auth"
            yield Flaw(child(pointer, "auth_required"), f"The action requires authentication, and {said}.")
            return


def cycles(document: Document) -> Iterator[Flaw]:
    """Find dependencies that lead back to where they began; each is reported where it closes."""
    dependencies = document.get("dependencies")
    graph: Graph = {}
    for name, needed in dependencies.items() if isinstance(dependencies, Mapping) else ():
        place = child("/dependencies", name)
        graph[name] = [(place + index, other) for index, other in strings(needed, "/[]")]
    done: set[str] = set()
    for name in graph:
        if name not in done:
            yield from _cycles_from(name, graph, done)


def _cycles_from(start: str, graph: Graph, done: set[str]) -> Iterator[Flaw]:
    path, waiting = [start], [iter(graph[start])]
    while waiting:
        pointer, needed = next(waiting[-1], (None, ""))
        if pointer is None:
            waiting.pop()
            done.add(path.pop())
        elif needed in path:
            circle = " -> ".join([*path[path.index(needed) :], needed])
            yield Flaw(pointer, f"The dependencies go round in a circle: {circle}.")
        elif needed in graph and needed not in done:
            path.append(needed)
            waiting.append(iter(graph[needed]))


def empty_recovery(document: Document) -> Iterator[Flaw]:
    """Find errors whose recovery says nothing."""
    for pointer, text in strings(document, "/errors/{}/recovery"):
        if not text.strip():
            yield Flaw(pointer, "The recovery is empty.")


def without_errors(document: Document) -> Iterator[Flaw]:
    """Find documents with actions that declare no errors at all."""
    if document.get("actions") and document.get("errors", {}) == {}:
        yield Flaw("/errors", "No error and no recovery is declared.")


CHECKS = (
    Check(
        "agent-json-errors",
        "warning",
        f"{SPEC} section 15",
        "Errors with a way of recovery are declared.",
        "Declare at least what happens at a rate limit, without authentication, and with bad input.",
        without_errors,
    ),
    Check(
        "agent-json-recovery",
        "error",
        f"{SPEC} section 10",
        "The recovery of an error says what to do.",
        "Name the action or endpoint to call, or how long to wait.",
        empty_recovery,
    ),
    Check(
        "agent-json-auth-action",
        "error",
        f"{SPEC} section 7",
        "required_for and optional_for name actions.",
        "Name an action by its id.",
        unknown_in_auth,
    ),
    Check(
        "agent-json-auth-both",
        "error",
        f"{SPEC} section 7",
        "No action is in required_for and in optional_for.",
        "Remove it from one of the two.",
        required_and_optional,
    ),
    Check(
        "agent-json-auth-disagrees",
        "error",
        f"{SPEC} sections 7 and 9",
        "auth_required of an action and the lists in auth agree.",
        "Correct one of the two.",
        disagreeing_auth,
    ),
    Check(
        "agent-json-auth-kind",
        "warning",
        f"{SPEC} section 7",
        "Where authentication is required, there is an auth section, and its type is not none.",
        'Describe it in auth; the types are "oauth2", "api_key" and "bearer".',
        unexplained_auth,
    ),
    Check(
        "agent-json-dependency",
        "error",
        f"{SPEC} section 11",
        "Dependencies name actions, on both sides.",
        "Name an action by its id.",
        unknown_dependencies,
    ),
    Check(
        "agent-json-cycle",
        "error",
        f"{SPEC} section 11",
        "Dependencies do not go round in a circle.",
        "Remove one of the dependencies: now none of these actions can be the first.",
        cycles,
    ),
    Check(
        "agent-json-degraded",
        "error",
        f"{SPEC} section 13",
        "degraded_actions names actions.",
        "Name an action by its id.",
        unknown_degraded,
    ),
)
