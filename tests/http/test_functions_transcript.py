"""What is read of requests, whole: `functions.txt`, in the words of `tests/function_transcripts.py`.

Bytes are written as latin-1. Of a body, `arrivals` are seconds to wait, or parts; `...` is a client that has gone.
"""

import asyncio
import base64
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import astuple
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from awp_publish_django.asgi import receive_in_time

from awp_publish import Principal
from awp_publish.http import body, multipart, origins, page_address, redirects, strict_json
from awp_publish.http.accept import accepts, choose_coding
from awp_publish.http.client_address import client_address, network_around, read_trusted_proxies
from awp_publish.http.cors import Cors
from awp_publish.http.exchange import Fields, header_members, mount_of, read_fields, route_path, with_header
from awp_publish.http.field_reader import FieldReader
from awp_publish.http.forms import Upload, is_form, read_form, read_query
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.streams import OpenStreams, StreamLimits
from awp_publish.http.talk import TalkFailed, read_message
from awp_publish.plugins.overview.html import Html, tag
from awp_publish.problems import NotJson, Problem, RateLimited, Refused, Violation
from tests.function_transcripts import compare
from tests.virtual_time import run_virtually


def encoded(headers: dict[str, str]) -> Fields:
    return {name.encode("latin-1"): value.encode("latin-1") for name, value in headers.items()}


def texts(value: object) -> object:
    """Return a value whose bytes are texts."""
    if isinstance(value, Upload):
        return {"file": value.decode("latin-1"), "name": value.filename, "type": value.media_type}
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, (list, tuple)):
        return [texts(each) for each in value]
    return {name: texts(each) for name, each in value.items()} if isinstance(value, dict) else value


def refusing(function: Callable[..., object]) -> Callable[..., object]:
    """Return a function that gives what a problem says instead of raising it."""

    def run(*arguments: Any) -> object:
        try:
            return texts(function(*arguments))
        except (Problem, NotJson, TalkFailed) as error:
            facts = [error.status, dict(error.headers), dict(error.members)] if isinstance(error, Problem) else []
            return [type(error).__name__, str(error), *facts, *(astuple(each) for each in getattr(error, "errors", ()))]

    return run


def client(peer: str | None, trusted: list[str], headers: dict[str, str], forwarded: str | None = None) -> str:
    scope = {"client": (peer, 1) if peer is not None else None}
    return client_address(scope, encoded(headers), read_trusted_proxies(trusted, forwarded))


def cors(allowed: list[str], headers: dict[str, str]) -> list[object]:
    door = Cors(allowed)
    reply = door.preflight(encoded(headers), "GET, POST")
    return [door.is_closed, door.headers(encoded(headers)), reply.status, reply.headers]


def field(schema: dict[str, Any], pairs: list[Any], *, keeps_names: bool = False) -> object:
    def value(given: Any) -> str | bytes:
        if isinstance(given, list):
            return Upload(given[0].encode("latin-1"), *given[1:])
        return str(given)

    reader = FieldReader({"type": "object", **schema}, keeps_names=keeps_names)
    return reader.read([(name, value(given)) for name, given in pairs])


def named(schema: dict[str, Any], pairs: list[Any]) -> object:
    return field(schema, pairs, keeps_names=True)


def written(fields: list[tuple[str, str]], files: list[Any]) -> object:
    kept = [(name, multipart.File(file[0], file[1], file[2].encode())) for name, file in files]
    kind, content = multipart.write_multipart(fields, kept)
    return [re.sub(r"[0-9a-f]{32}", "BOUNDARY", text) for text in (kind, content.decode())]


def pages(headers: dict[str, str], own: list[str]) -> list[object]:
    fields, known = encoded(headers), frozenset(own)
    results = [refusing(each)(fields, known) for each in (origins.refuse_foreign_pages, origins.refuse_foreign_host)]
    return [origins.is_own_page(fields, known), origins.is_cross_site(fields, known), *results]


def address(given: str, urls: list[str], base: str = "https://shop.example/shop/books/") -> object:
    page = page_address.read_address(given, urls, base)
    return [page.path, page.query, page.below(urls[0])]


def cookies(sent: list[list[str]], answers: list[list[str]]) -> object:
    kept = redirects.cookies_of((name.encode(), value.encode("latin-1")) for name, value in sent)
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in answers]
    redirects.receive_cookies(kept, pairs)
    return [kept, redirects.location_of(pairs), redirects.location_of(read_fields(pairs))]


def sign_in(path: str | None, location: str) -> bool:
    way = SimpleNamespace(path=path) if path is not None else None
    return redirects.asks_to_sign_in(SimpleNamespace(way=way), location)  # type: ignore[arg-type]


def streams(limits: list[int], *steps: list[Any]) -> list[object]:
    """Open streams: `[NAME, CALLER, ADDRESS]` takes a place, `[NAME]` leaves it, four and more identify a caller."""
    door, told = OpenStreams("streams", StreamLimits(*limits)), list[object]()
    places: dict[str, Any] = {}
    for name, *rest in steps:
        stack, place = places.setdefault(name, (ExitStack(), None))
        try:
            match rest:
                case []:
                    stack.close()
                    del places[name]
                case [caller, at]:
                    held = door.hold(Principal(caller) if caller else None, at)
                    places[name] = stack, stack.enter_context(held)
                case ["?", at, _]:
                    places[name] = stack, stack.enter_context(door.hold(None, at, is_identified=False))
                case [caller, at, _, _]:
                    door.identify(place, Principal(caller) if caller else None, at)
            told.append(sorted((str(share), number) for share, number in door._shares.items()))
        except RateLimited as error:
            told.append([error.detail, error.recovery, dict(error.headers), dict(error.members)])
    return told


def shortened(content: bytes) -> str:
    return content.decode() if len(content) < 100 else f"{len(content)} bytes"


def read_body(most: int, headers: dict[str, str], *arrivals: Any) -> object:
    return run_virtually(_read_body(most, encoded(headers), list(arrivals)))


async def _read_body(most: int, fields: Fields, arrivals: list[Any]) -> object:
    receive = _receiving(arrivals)
    try:
        told = shortened(await body.read_body({"http_version": "1.1"}, fields, receive, most))
    except (Problem, body.ClientDisconnect) as error:
        headers = dict(error.headers) if isinstance(error, Problem) else {}
        told = f"{type(error).__name__} {error} {headers}"
    return [told, round(asyncio.get_running_loop().time(), 3), f"{len(arrivals)} not received"]


def pass_body(version: str, *arrivals: Any) -> object:
    async def run() -> object:
        receive, told = receive_in_time({"http_version": version}, _receiving(list(arrivals))), list[object]()
        try:
            while (message := await receive())["type"] != "http.disconnect":
                told.append(shortened(message["body"]))
        except Problem as error:
            told.append(f"{error} {dict(error.headers)}")
        return [*told, round(asyncio.get_running_loop().time(), 3)]

    return run_virtually(run())


def _receiving(arrivals: list[Any]) -> Callable[[], Any]:
    async def receive() -> dict[str, Any]:
        pauses = list(takewhile(lambda part: isinstance(part, (int, float)), arrivals))
        del arrivals[: len(pauses)]
        for pause in pauses:
            await asyncio.sleep(pause)
        part = arrivals.pop(0) if arrivals else "..."
        if part == "...":
            return {"type": "http.disconnect"}
        text = part[0] * part[1] if isinstance(part, list) else part
        return {"type": "http.request", "body": text.encode(), "more_body": bool(arrivals)}

    return receive


def path(full: str, root: str = "") -> list[str]:
    scope = {"path": full, "root_path": root}
    return [route_path(scope), mount_of(scope)]


def problem(members: dict[str, Any], instance: str = "", request_id: str = "") -> list[object]:
    errors = [Violation(*each) for each in members.pop("errors", ())]
    reply = ProblemRenderer(None, {"OWN": "Own."}).reply(
        Refused(members.pop("detail", "No."), errors=errors, **members), instance, request_id
    )
    return [reply.status, reply.headers, reply.body]


def markup(name: str, children: list[Any], attributes: dict[str, Any]) -> str:
    return tag(name, *(Html(each[0]) if isinstance(each, list) else each for each in children), **attributes)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "accepts": lambda accept, kind: accepts(accept.encode(), kind),
    "coding": lambda accept, *codings: choose_coding(accept.encode(), codings),
    "client": client,
    "network": network_around,
    "cors": cors,
    "query": lambda text: read_query(text.encode("latin-1")),
    "count": lambda text: len(read_query(text.encode())),
    "form": lambda kind, text: read_form(kind.encode(), text.encode("latin-1")),
    "many": lambda kind, part, times: len(read_form(kind.encode(), (part * times).encode())),
    "is_form": lambda kind: is_form(kind.encode()),
    "field": field,
    "named": named,
    "file": lambda name, value: multipart.read_file(name, value, f"/{name}"),
    "base64": lambda text: base64.b64encode(text.encode("latin-1")).decode(),
    "multipart": written,
    "pages": pages,
    "origin": origins.origin_of,
    "address": address,
    "json": lambda text: strict_json.parse_json(text.encode("latin-1")),
    "deep": lambda text, times: len(str(strict_json.parse_json((text * times).encode()))),
    "is_json": lambda kind: strict_json.is_json(kind.encode()),
    "kind": lambda value: [strict_json.json_kind(value), strict_json.is_rpc_id(value)],
    "cookies": cookies,
    "sign_in": sign_in,
    "streams": streams,
    "body": read_body,
    "pass": pass_body,
    "headers": lambda *pairs: [*read_fields([(n.encode(), v.encode()) for n, v in pairs]).items()],
    "members": lambda *pairs: header_members(pairs),
    "with": lambda pair, *pairs: with_header([*map(tuple, pairs)], tuple(pair) if pair else None),
    "path": path,
    "problem": problem,
    "message": read_message,
    "tag": markup,
}


def test_functions_of_http_answer_as_in_the_transcript(request):
    functions = {name: refusing(function) for name, function in FUNCTIONS.items()}
    compare(Path(__file__).parent / "functions.txt", functions, request)
