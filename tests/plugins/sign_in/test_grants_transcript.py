"""What becomes of grants, step by step: `transcripts/grants.txt`, in the words of `tests/function_transcripts.py`.

Codes and tokens have names: the code "one" gives the access token "one" and the refresh token "one", which are
exchanged for others of another name. Times are seconds from the beginning.
"""

import asyncio
import re
from pathlib import Path
from typing import Any

from awp_publish.browsing.addresses import parse_address
from awp_publish.browsing.cookies import Cookie
from awp_publish.calls.tokens import Tokens
from awp_publish.plugins.sign_in import grants
from awp_publish.plugins.sign_in.clients import KnownClient
from awp_publish.plugins.sign_in.errors import OAuthError
from awp_publish.plugins.sign_in.grants import Access, Grant, Grants, challenge_of
from awp_publish.stores.memory import MemoryStore
from tests.function_transcripts import compare
from tests.stores.conftest import Clock

BACK = "https://agent.example/callback"
VERIFIER = "v" * 43


class Scene:
    """Grants of a store, and the names of their codes and tokens."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner, self._clock = runner, Clock()
        self._begun = self._clock()
        self._store = MemoryStore(clock=self._clock)
        self._tokens: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self.keys("a key")

    def keys(self, *keys: str) -> None:
        self._grants = Grants(self._store, Tokens(keys, "test", 0.0), 600, self._clock, self._end_session)
        self._ended: list[str] = []

    async def _end_session(self, cookies: Any) -> None:
        self._ended += [f"{name}={value}" for name, value in cookies.items()]

    def sleep(self, seconds: float) -> None:
        self._clock.pass_time(seconds)

    def _told(self, grant: Grant | None) -> Any:
        if grant is None:
            return None
        times = [round(at - self._begun) for at in (grant.began, grant.until, grant.refreshed) if at]
        return [grant.client_name, grant.person, list(grant.scopes), times, grant.host, grant.key]

    def _named(self, name: str, issued: grants.Issued) -> list[object]:
        self._tokens |= {f"access {name}": issued.access, f"refresh {name}": issued.refresh or ""}
        return [issued.seconds, issued.scopes, issued.refresh is not None]

    def _run(self, work: Any) -> Any:
        try:
            return self._runner.run(work)
        except OAuthError as error:
            return [error.code, error.detail]

    def begin(self, name: str, seconds: float = 3600, **facts: Any) -> None:
        now = self._clock()
        facts = {
            "client": "claude",
            "person": "session ann",
            "person_name": "Ann",
            "scopes": ("orders", "books"),
        } | facts
        cookies = tuple(Cookie(name=each, value="1", domain="shop.example") for each in facts.pop("cookies", ""))
        facts["scopes"] = tuple(facts["scopes"])
        grant = Grant("", client_name=facts["client"].title(), began=now, until=now + seconds, cookies=cookies, **facts)
        self._tokens[f"code {name}"] = self._run(self._grants.begin(grant, BACK, challenge_of(VERIFIER)))

    def exchange(self, name: str, client: str = "claude", secret: str = "", **changes: Any) -> Any:
        given = {"redirect": BACK, "verifier": VERIFIER, **changes}
        known = KnownClient(client, client, (), "named", secret.encode())
        issued = self._run(self._grants.exchange(self._tokens.get(f"code {name}", name), known, **given))
        return self._named(name, issued) if isinstance(issued, grants.Issued) else issued

    def refresh(
        self, name: str, new: str, scopes: Any = None, client: str = "claude", secret: str = "", key: str = ""
    ) -> Any:
        known = KnownClient(client, client, (), "named", secret.encode())
        issued = self._run(self._grants.refresh(self._tokens[f"refresh {name}"], known, scopes, key))
        return self._named(new, issued) if isinstance(issued, grants.Issued) else issued

    def find(self, name: str) -> Any:
        access: Access | None = self._run(self._grants.find(self._tokens.get(f"access {name}", name)))
        if access is None:
            return None
        return [*self._told(access.grant), sorted(access.scopes), round(access.until - self._begun)]

    def of_refresh_token(self, name: str) -> Any:
        return self._told(self._run(self._grants.of_refresh_token(self._tokens.get(f"refresh {name}", name))))

    def to_client(self, name: str) -> Any:
        now = self._clock()
        grant = Grant("", "robot", "Robot", None, "", ("stock",), now, now + 300)
        return self._named(name, self._run(self._grants.issue_to_client(grant)))

    def end_of_token(self, kind: str, name: str, client: str = "claude") -> Any:
        known = KnownClient(client, client, (), "named")
        ended = self._run(self._grants.end_of_token(self._tokens.get(f"{kind} {name}", name), known))
        return ended or self._ended

    def end(self, name: str) -> Any:
        access = self._run(self._grants.find(self._tokens[f"access {name}"]))
        return [self._told(self._run(self._grants.end(access.grant.id if access else "x" * 22))), self._ended]

    def keep(self, name: str, *cookies: str) -> Any:
        """Give a grant these cookies, and return the header that its requests have."""
        access = self._run(self._grants.find(self._tokens[f"access {name}"]))
        changed = tuple(Cookie(name=each, value="2", domain="shop.example") for each in cookies)
        self._run(self._grants.keep_cookies(access.grant, lambda _: changed))
        again = self._run(self._grants.find(self._tokens[f"access {name}"]))
        header = again and again.grant.cookie_header(parse_address("https://shop.example/"))
        return header and header.decode()

    def of_person(self, person: str) -> Any:
        return [self._told(grant) for grant in self._run(self._grants.of_person(person))]

    def recent(self) -> Any:
        return [self._told(grant) for grant in self._run(self._grants.recent())]

    def grant_of(self, kind: Any, of: str, name: str, prefix: str | None = None) -> bool:
        """Whether a code or token is taken for one of a kind, also with another prefix."""
        token = self._tokens[f"{of} {name}"]
        if prefix is not None:
            token = prefix + re.sub("^awp_[a-z]+_", "", token)
        return self._grants.grant_of(kind, token) is not None


def test_grants_go_as_in_the_transcript(request, monkeypatch):
    monkeypatch.setattr(grants, "MAX_OF_PERSON", 3)
    monkeypatch.setattr(grants, "MAX_RECENT", 4)
    monkeypatch.setattr(grants, "MAX_TOKENS", 3)
    monkeypatch.setattr(grants, "MAX_FOUND", 2)
    with asyncio.Runner() as runner:
        scene = Scene(runner)
        steps = [name for name in dir(Scene) if not name.startswith("_")]
        functions: dict[str, Any] = {name: getattr(scene, name) for name in steps}
        functions["begin"] = lambda name, seconds=3600, facts=None: scene.begin(name, seconds, **(facts or {}))
        functions["exchange"] = lambda name, facts=None: scene.exchange(name, **(facts or {}))
        functions["refresh"] = lambda name, new, facts=None: scene.refresh(name, new, **(facts or {}))
        compare(Path(__file__).parent / "transcripts" / "grants.txt", functions, request)
