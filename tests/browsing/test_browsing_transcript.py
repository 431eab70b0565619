"""How a session reads addresses, cookies, patterns and values, and what forms send, whole: `browsing.txt`. What its
methods answer: `sessions.txt`.

Both are in the words of `tests/function_transcripts.py`.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from awp_publish.browsing.addresses import Origins, parse_address
from awp_publish.browsing.cookies import CookieJar, parse_cookie_date, parse_set_cookie, write_set_cookie
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.json_patch import make_patch
from awp_publish.browsing.patterns import find_match
from awp_publish.browsing.session import Session
from awp_publish.browsing.values import number_of, sanitise
from tests.browsing.driving import Agent, headers_of
from tests.function_transcripts import compare

BASE = "https://shop.example/books/list?page=2#top"
NOW = 1_800_000_000.0


def address(text: str, base: str = BASE) -> list[object]:
    parsed = parse_address(text, parse_address(base))
    return [str(parsed), parsed.origin, parsed.authority, parsed.target, parsed.document, parsed.is_trustworthy]


def origins(urls: list[str], text: str = "/", longest: int = 100) -> list[object]:
    known = Origins.of(*urls)
    try:
        found: object = str(known.resolve(text, known.home, longest))
    except AwpError as error:
        found = [error.code, str(error), error.describe().get("details")]
    return [str(known.home), sorted(known.hosts), found]


def cookie(text: str, at: str = "https://www.shop.example/books/list") -> object:
    parsed = parse_set_cookie(text, parse_address(at), NOW)
    return parsed and [asdict(parsed), write_set_cookie(parsed, NOW)]


def sent(set_cookies: list[str], to: str, at: str = "https://www.shop.example/books/list", after: float = 0.0) -> str:
    jar = CookieJar(4, 50)
    jar.store_from([("Set-Cookie", text) for text in set_cookies], parse_address(at), NOW)
    return jar.header_for(parse_address(to), NOW + after)


def number(kind: str, value: str) -> str:
    return str(number_of(kind, value))


def form(controls: str, attributes: str = "", *acts: list[str]) -> object:
    """Fill in a form and send it: what is wrong with it, or the request."""
    return press(f'<form action="/s" {attributes}>{controls}<button id=go>Go</button></form>', "#go", *acts)


def press(html: str, target: str = "#go", *acts: list[str]) -> object:
    agent = Agent({"/": html, "/s": "<p>Done", "/t": "<p>Done"}, limits={"form_bytes": 1000})
    try:
        for action, place, *value in acts:
            agent.act(action, place, value=value[0] if value else None)
        agent.click(target)
    except AwpError as error:
        details: Any = error.describe().get("details", {})
        faults = [[fault["name"], fault["label"], fault["reason"]] for fault in details.get("invalid", ())]
        return [error.code, faults or str(error)]
    last = agent.web.last
    kind, _, boundary = headers_of(last).get("content-type", "").partition("; boundary=")
    body = last.body.decode("utf-8", "replace").replace(boundary or "no boundary", "BOUNDARY")
    return [len(agent.web.asked), last.method, last.path, kind, body]


def session(pages: dict[str, str], *calls: list[Any]) -> list[object]:
    """What each method of a session answers: its name and its params."""
    agent, told = Agent(pages), list[object]()
    for method, params in calls:
        try:
            told.append(agent.call(method, **params))
        except AwpError as error:
            told.append(error.describe())
    return told


def restored(exported: Any) -> object:
    """What a session that is read again exports, and its pages; or why it is refused."""
    try:
        found = Session.restore(exported, Origins.of("https://shop.example"), clock=lambda: NOW)
    except AwpError as error:
        return error.describe()
    return [found.export(), found.list_tabs(), found.url]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "address": address,
    "origins": origins,
    "cookie": cookie,
    "sent": sent,
    "date": parse_cookie_date,
    "patch": make_patch,
    "match": find_match,
    "sanitise": sanitise,
    "number": number,
    "form": form,
    "press": press,
    "session": session,
    "restored": restored,
}


@pytest.mark.parametrize("name", ["browsing.txt", "sessions.txt"])
def test_functions_of_browsing_answer_as_in_the_transcript(name, request):
    compare(Path(__file__).parent / name, FUNCTIONS, request)
