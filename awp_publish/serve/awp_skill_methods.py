"""The methods of the AWP door that are about the site's own actions."""

from dataclasses import replace
from functools import partial
from typing import Final

from awp_publish.browsing.addresses import WebAddress, parse_address
from awp_publish.browsing.page import Fetch
from awp_publish.model import JsonObject
from awp_publish.problems import Problem
from awp_publish.serve.awp_callers import with_header
from awp_publish.serve.awp_desk import Client, once
from awp_publish.serve.awp_messages import Request
from awp_publish.serve.awp_sessions import Held
from awp_publish.serve.awp_skills import CARRIED, Carried

_NOT_CARRIED: Final = (
    b"accept",
    b"connection",
    b"content-",
    b"host",
    b"origin",
    b"sec-",
    b"transfer-",
    b"upgrade",
    b"x-request-id",
)
"""Beginnings of headers that speak about the upgrade, not about its caller."""


async def list_skills(client: Client, request: Request) -> JsonObject:
    """skills.list."""
    return client.desk.skills.list(client.caller.principal)


async def invoke_skill(client: Client, request: Request) -> JsonObject:
    """skills.invoke: in a session, whose cookies the call has, or without one."""
    skills = client.desk.skills
    held = client.find(request) if request.params.get("session_id") is not None else None
    try:
        carried = skills.read(request.params, request.key, request.trace, client.caller.signed)
    except Problem as problem:
        raise skills.refuse(problem, request.trace) from problem
    run = partial(_invoke, client, held, carried)
    if carried.action.idempotency is not None:
        request = replace(request, key=None)  # the action's own gate knows what its keys mean
    if held is None:
        return await once(client.repeats, request, run)
    async with held.turn:
        client.check_open(held)
        return await once(held.repeats, request, run)


async def _invoke(client: Client, held: Held | None, carried: Carried) -> JsonObject:
    """One request to our own door, in which the whole application has its say; the cookies are those of the action.

    A session is a visitor of its own: with one, the connection's cookies stay out of the call, and out of the session.
    """
    desk, action = client.desk, carried.action
    home = parse_address(desk.catalog.absolute(desk.catalog.paths.awp))
    goal = parse_address(desk.catalog.absolute(desk.catalog.endpoint_of(action)[1]))
    headers = _headers_of(client, carried, home)
    if held is not None:
        browser = held.session.browser
        visitor = {"user-agent": browser.user_agent, "cookie": browser.jar.header_for(goal, browser.clock())}
        headers = [*(pair for pair in headers if pair[0] not in visitor), *visitor.items()]
    fetch = Fetch("POST", home.target, tuple(pair for pair in headers if pair[1]), b"{}", home.origin)
    fetched = await client.surface.fetch(fetch, {CARRIED: carried})
    if held is not None:
        held.session.browser.jar.store_from(fetched.headers, goal, held.session.browser.clock())
    return desk.skills.tell(carried, fetched)


def _headers_of(client: Client, carried: Carried, home: WebAddress) -> list[tuple[str, str]]:
    """What the connection's own request showed, which may tell who calls."""
    shown = with_header(client.surface.scope["headers"], client.caller.header)
    kept = [(name, value) for name, value in shown if not name.startswith(_NOT_CARRIED)]
    own = [("host", home.authority), ("content-type", "application/json"), ("x-request-id", carried.trace)]
    return [*own, *((name.decode("latin-1"), value.decode("latin-1")) for name, value in kept)]
