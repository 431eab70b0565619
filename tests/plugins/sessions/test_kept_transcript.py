"""What the store has of sessions after each thing that happens to them: `kept.txt`, and what identifies somebody.

A line `> WHAT NAME | COOKIE | ...` is something that happens to the session of that name. It is followed by what came
of it, what is logged, and what has changed in the store, with the second until which it is kept. --golden writes these
anew; read the change.
"""

import json
import secrets
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from awp_publish import Site
from awp_publish.browsing.addresses import parse_address
from awp_publish.browsing.cookies import Cookie
from awp_publish.calls.tokens import Tokens
from awp_publish.plugins.prerequisites.successes import Successes, success_key
from awp_publish.plugins.sessions import cookies as bounds
from awp_publish.plugins.sessions.cookies import CookieSessions, KeptSession, has_own_cookies
from awp_publish.plugins.sessions.identity import identity_of
from awp_publish.problems import Problem
from awp_publish.stores import Add, Look, Swap
from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import session_key
from tests.function_transcripts import compare
from tests.guarded import make_shop
from tests.plugins.jobs.conftest import Clock

HOME = parse_address("https://shop.example/basket/add")
KEYS = ["a newer key of this site", "an older key of this site"]


class Scene:
    """Sessions in a store whose clock stands still unless a line says otherwise."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore(self.clock)
        self.successes = Successes(_site_with_successes(self.store))
        self.sessions = self.open(KEYS)
        self.ids: dict[str, str] = {}
        self.seen: dict[str, KeptSession] = {}
        self.kept: dict[str, str] = {}

    def open(self, keys: list[str], known: tuple[str, ...] = ("session",)) -> CookieSessions:
        tokens = Tokens(keys, "session:shop.example", 60)
        return CookieSessions(self.store, tokens, self.clock, known, self.successes)

    async def find(self, name: str) -> KeptSession | None:
        return self.seen.get(name) or await self.sessions.find(self.ids[name])

    async def act(self, what: str, arguments: list[str], cookies: list[str]) -> Any:
        match what, arguments:
            case "known", names:
                self.sessions = self.open(KEYS, tuple(names))
                return self.sessions is not None
            case "sleep", [seconds]:
                self.clock.seconds += float(seconds)
                return "later"
            case "begin", [name, owner, address]:
                key = session_key(self.ids.setdefault(name, self.sessions.new_id()))
                return await self.sessions.begin(key, owner.removeprefix("-"), address, cookies, HOME)
            case "worth", []:
                return self.sessions.are_worth_keeping(cookies, HOME)
            case "own", [text]:
                return self.sessions.is_own(self.ids.get(text, text))
            case "issued", [name, *keys]:
                self.ids[name] = self.open([" ".join(keys)]).new_id()
                return self.sessions.is_own(self.ids[name])
            case "job", [name]:
                return self.sessions.ids_of_job(name)
            case "moved", [name, *others]:
                return await self.sessions.has_moved_to(self.ids[name], [self.ids[other] for other in others])
            case "follow", [name]:
                found = await self.sessions.load(session_key(self.ids[name]), follows=True)
                return found and found.key
            case "see", [name, seen]:
                if (found := await self.find(name)) is not None:
                    self.seen[seen] = found
                return found and (found.owner, found.created, found.used, [cookie.name for cookie in found.jar])
            case "succeed", [name, action]:
                key = success_key(action, f"session:{session_key(self.ids[name])}")
                return (await self.store.run([Add(key, b"done", 60)])).failed is None
            case "damage", [name]:
                key = session_key(self.ids[name])
                raw = (await self.store.run([Look(key)])).seen[0]
                assert isinstance(raw, bytes)
                return (await self.store.run([Swap(key, raw, cookies[0].encode(), 60)])).failed is None
        found = await self.find(arguments[0])
        if found is None:
            return "There is none."
        match what, arguments[1:]:
            case "header", [address]:
                return "Cookie: " + self.sessions.header_for(found, parse_address(address))
            case "answer" | "stale" as how, []:
                new_id = await self.sessions.update(found, cookies, HOME, may_renew=how == "answer")
                if new_id is not None:
                    self.ids[f"{arguments[0]}'"] = new_id
                return new_id
        raise AssertionError(what)

    def name(self, text: str) -> str:
        for name, session_id in sorted(self.ids.items(), reverse=True):
            text = text.replace(session_id, name).replace(session_key(session_id), name)
        return text

    def contents(self) -> Iterator[tuple[str, str]]:
        now = self.clock.seconds
        for entries in (self.store._values.entries, self.store._windows.entries):
            for key, (kept, until) in entries.items():
                if until > now:
                    yield key, f"until {until:g}: {_short(kept) if isinstance(kept, bytes) else kept}"


def _site_with_successes(store: MemoryStore) -> Site:
    """Return a site on which an order and a payment have to come before the delivery."""
    site = make_shop(store=store)

    @site.agent("order")
    async def order() -> None:
        """Order a book."""

    @site.agent("pay")
    async def pay() -> None:
        """Pay for it."""

    @site.agent("deliver", requires=["order", "pay"])
    async def deliver() -> None:
        """Deliver it."""

    site.freeze()
    return site


def _short(raw: bytes) -> str:
    """Return a record, with the cookies alone of whose facts some are not the usual ones."""
    try:
        record = json.loads(raw)
    except ValueError:
        return str(raw)
    usual = {"domain": "shop.example", "host_only": True, "expires": None, "path": "/basket"}
    usual |= {"secure": False, "http_only": False, "same_site": ""}
    for cookie in record.get("cookies", ()) if isinstance(record, dict) else ():
        for name, value in usual.items():
            if isinstance(cookie, dict) and name in cookie and cookie[name] == value:
                del cookie[name]
        if isinstance(cookie, dict) and len(str(cookie.get("value", ""))) > 100:
            cookie["value"] = len(cookie["value"])
    return json.dumps(record)


async def test_the_store_keeps_sessions_as_in_the_transcript(monkeypatch, caplog, request):
    numbers = count(1)
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size: f"{next(numbers):0{size * 4 // 3}}")
    monkeypatch.setattr(bounds, "MAX_ANONYMOUS", 2)
    monkeypatch.setattr(bounds, "MAX_COOKIES", 4)
    path, lines, scene = Path(__file__).parent / "kept.txt", list[str](), Scene()
    for line in path.read_text().splitlines():
        if line.startswith("# "):
            scene = Scene()
        if line.startswith("# ") or not line:
            lines.append(line)
        if not line.startswith("> "):
            continue
        words, *cookies = line[2:].split(" | ")
        try:
            answer = str(await scene.act(words.split()[0], words.split()[1:], [_repeated(each) for each in cookies]))
        except Problem as problem:
            answer = f"! {problem.code}: {problem.detail} {problem.recovery}"
        logged = [f"    logged: {record.getMessage()}" for record in caplog.records]
        caplog.clear()
        before, scene.kept = scene.kept, {scene.name(key): scene.name(value) for key, value in scene.contents()}
        changes = [f"    {key}, {value}" for key, value in scene.kept.items() if before.get(key) != value]
        changes += [f"    {key} is gone" for key in before if key not in scene.kept]
        lines += [line, *(scene.name(each) for each in (answer, *logged)), *changes]
    if request.config.getoption("--golden"):
        path.write_text("\n".join(lines) + "\n")
    assert lines == path.read_text().splitlines()


def _repeated(cookie: str) -> str:
    """Write x*4000 out."""
    name, star, number = cookie.partition("=x*")
    return f"{name}={'x' * int(number)}" if star else cookie


def _identity(cookies: dict[str, str], *known: str) -> Any:
    jar = [Cookie(name=name, value=value, domain="shop.example") for name, value in cookies.items()]
    return [[*key, value] for key, value in identity_of(jar, known).items()]


def test_cookies_identify_callers_as_in_the_transcript(request):
    compare(Path(__file__).parent / "identity.txt", {"identity": _identity, "own": has_own_cookies}, request)
