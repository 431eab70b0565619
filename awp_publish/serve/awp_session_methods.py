"""The methods of the AWP door that are about sessions as a whole."""

from collections.abc import Mapping
from functools import partial

from awp_publish.browsing.errors import AwpError, missing, refuse
from awp_publish.model import JsonObject
from awp_publish.policy.tokens import Expired, NotOurs, Tokens
from awp_publish.serve.awp_desk import Client, once
from awp_publish.serve.awp_messages import Request
from awp_publish.serve.awp_sessions import Held, read_session_id


async def create_session(client: Client, request: Request) -> JsonObject:
    """session.create."""
    return await once(client.repeats, request, partial(_create, client, request.params))


async def _create(client: Client, params: Mapping[str, object]) -> JsonObject:
    _refuse_unsupported(params)
    address = client.surface.address
    held = client.desk.sessions.create(client, client.caller.id, params, client.desk.longest, address)
    return _tell(client, held)


def _refuse_unsupported(params: Mapping[str, object]) -> None:
    """Draft, Capability Rules: what needs a feature that is not there is refused, not ignored."""
    if params.get("persist"):
        details = {"param": "persist", "recovery": "Keep what session.export answers, and session.import it later."}
        raise AwpError("UNSUPPORTED", "Sessions are not kept over a restart.", details)
    network = params.get("network")
    proxy = network.get("proxy") if isinstance(network, dict) else None
    mode = proxy.get("mode", "none") if isinstance(proxy, dict) else proxy
    if mode not in (None, "none"):
        raise AwpError("UNSUPPORTED", "There are no proxies: only this site is browsed.", {"param": "network.proxy"})


async def close_session(client: Client, request: Request) -> JsonObject:
    """session.close."""
    held = client.find(request)
    async with held.turn:
        client.check_open(held)
        client.desk.sessions.close(held)
    return {"closed": True}


async def list_sessions(client: Client, request: Request) -> JsonObject:
    """session.list: those of this connection."""
    listed = [_summarise(client, held) for held in client.desk.sessions.of(client)]
    return {"sessions": listed, "count": len(listed)}


async def resume_session(client: Client, request: Request) -> JsonObject:
    """session.resume: a session whose connection is gone, or is about to be found gone."""
    session_id, token = read_session_id(request.params), request.params.get("resume_token")
    if not isinstance(token, str):
        raise missing("resume_token")
    held = client.desk.sessions.resume(client, client.caller.id, session_id, token)
    return {**_tell(client, held), **_summarise(client, held)}


async def export_session(client: Client, request: Request) -> JsonObject:
    """session.export: all that is worth carrying, signed for this caller."""
    held = client.find(request)
    async with held.turn:
        client.check_open(held)
        state, expires = client.desk.exports.write({"p": client.caller.id, "s": held.session.export()})
    return {"session_id": held.id, "state": state, "expires_at": int(expires)}


async def import_session(client: Client, request: Request) -> JsonObject:
    """session.import: a new session like the one that was exported, in this process or another."""
    return await once(client.repeats, request, partial(_import, client, request.params))


async def _import(client: Client, params: JsonObject) -> JsonObject:
    desk, state = client.desk, params.get("state")
    if not isinstance(state, str):
        raise missing("state")
    exported = _read_export(desk.exports, state, client.caller.id)
    held = desk.sessions.restore(client, client.caller.id, exported, params, desk.longest, client.surface.address)
    return {**_tell(client, held), **_summarise(client, held)}


def _read_export(exports: Tokens, state: str, caller: str) -> object:
    try:
        facts = exports.read(state)
    except NotOurs:
        refuse("The state is not an export of this site.", param="state")
    except Expired:
        refuse("The state has expired.", param="state")
    if facts.get("p") != caller:
        raise AwpError("PERMISSION_DENIED", "The state was exported for another caller.", {"param": "state"})
    return facts.get("s")


def _tell(client: Client, held: Held) -> JsonObject:
    return {"session_id": held.id, "resume_token": held.token, **client.desk.sessions.times}


def _summarise(client: Client, held: Held) -> JsonObject:
    return {
        "session_id": held.id,
        "url": held.session.url,
        "page_count": held.session.page_count,
        "uptime_ms": client.desk.sessions.uptime_ms(held),
    }
