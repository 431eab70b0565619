"""What the store is told of webhooks, and what becomes of these: `registrations.txt`, in the words of
`tests/function_transcripts.py`.

Each answer is followed by the steps at the store. `answers` are those of receivers: a status, whether the challenge is
echoed, or a failure.
"""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from awp_publish.http.outgoing import Posted
from awp_publish.plugins.events import hook, webhooks
from awp_publish.plugins.events.hook import RefusedCallback, Webhook
from awp_publish.plugins.events.log import Events
from awp_publish.plugins.events.webhooks import TooMany, Webhooks
from awp_publish.problems import StoreUnavailable
from tests.function_transcripts import compare
from tests.timed import Clock, WrittenStore


class Scene:
    def __init__(self, clock: Clock, runner: asyncio.Runner) -> None:
        self._clock, self._runner, self._store = clock, runner, WrittenStore(clock)
        self.made = Webhooks(lambda: self._store, Events(lambda: self._store, lambda subject: None, ""))
        self.made.send = self._send  # type: ignore[assignment, method-assign]
        self.made.work_anyway = lambda: None  # type: ignore[method-assign]
        self._answers: list[Any] = []
        self._hooks: dict[str, Webhook] = {}
        self._sent: list[str] = []

    async def _send(self, to: Webhook, message: Any) -> Any:
        self._sent.append(f"sent {re.sub('msg_verification_.*', 'ID', message.id)} to {to.url}")
        answer = self._answers.pop(0)
        challenge = json.loads(message.body).get("challenge", "")
        match answer:
            case [status, "echo"]:
                return Posted(status, json.dumps({"challenge": challenge}).encode())
            case [status, body]:
                return Posted(status, body.encode())
        return answer

    def _run(self, work: Callable[[], Any]) -> Any:
        try:
            answer = self._runner.run(work())
        except (RefusedCallback, TooMany, StoreUnavailable) as problem:
            answer = f"! {problem} {getattr(problem, 'reason', '')}".rstrip()
        results = [*self._sent, *self._store.steps]
        self._sent, self._store.steps = [], []
        return [answer, *(_named(each) for each in results)]

    def make(self, name: str, members: dict[str, Any]) -> Any:
        facts = {"kind": "mcp", "principal": "ann", "url": "https://receiver.example/in", **members}
        facts["logs"] = tuple(facts.get("logs", ()))
        self._hooks[name] = Webhook(id=name, **facts)
        return name

    def verify(self, name: str, answers: list[Any], *, forever: bool = False) -> Any:
        self._answers = answers
        return self._run(lambda: self.made.verify(self._hooks[name], is_forever=forever))

    def put(self, name: str, before: str | None = None) -> Any:
        earlier = self._hooks[before] if before is not None else None
        new = self._hooks[name]
        if earlier is not None:
            new.id = earlier.id
        return self._run(lambda: self.made.put(new, earlier))

    def find(self, name: str) -> Any:
        async def find() -> Any:
            found = await self.made.find(name)
            if found is not None:
                self._hooks[name] = found
            return found and [found.url, found.logs, found.is_active]

        return self._run(find)

    def at(self, log: str) -> Any:
        async def find() -> Any:
            return [each.id for each in await self.made.at(log)]

        return self._run(find)

    def change(self, name: str, url: str) -> Any:
        def change(changed: Webhook) -> None:
            changed.url = url

        async def make() -> Any:
            changed = await self.made.change(self._hooks[name], change)
            return changed and changed.url

        return self._run(make)

    def remove(self, name: str) -> Any:
        return self._run(lambda: self.made.remove(self._hooks[name]))

    def postpone(self, name: str, seconds: float) -> Any:
        return self._run(lambda: self.made.postpone(self._hooks[name], seconds))

    def wake(self, log: str) -> Any:
        return self._run(lambda: self.made.wake(log))

    def carry(self, name: str, kinds: dict[str, Any] | None = None) -> Any:
        def send_all(pause: Any) -> Any:
            async def send(carried: Webhook) -> Any:
                self._sent.append(f"carried {carried.id}")
                if pause == "away":
                    raise StoreUnavailable("Away.")
                return pause

            return send

        self.made.kinds = {kind: send_all(pause) for kind, pause in (kinds or {}).items()}
        return self._run(lambda: self.made._carry(name))

    def sleep(self, seconds: float) -> None:
        self._clock.now += seconds

    def address(self, url: str) -> Any:
        try:
            return self.made.check_address(url)
        except RefusedCallback as refused:
            return f"! {refused}"

    def trusts(self) -> list[str]:
        return sorted(self.made.trusted)


def _named(text: str) -> str:
    """Return a step with names in place of digests, and without the record of a webhook."""
    text = re.sub(r"b'\{\"id\".*?\}'", "RECORD", text)
    for parts in (
        ("ann",),
        ("ben",),
        ("of", "ann"),
        ("of", "ben"),
        ("at", "receiver.example"),
        ("at", "other.example"),
    ):
        text = text.replace(webhooks._digest(*parts), "+".join(parts))
    for who in ("ann", "ben"):
        for url in ("https://receiver.example/in", "https://other.example/in"):
            text = text.replace(webhooks._digest(who, url), f"{who}+{url}")
    return text


def test_the_store_keeps_webhooks_as_in_the_transcript(request, monkeypatch):
    clock = Clock()
    now = SimpleNamespace(time=clock)
    monkeypatch.setattr(hook, "time", now)
    monkeypatch.setattr(webhooks, "time", now)
    monkeypatch.setattr(webhooks, "VERIFICATIONS", 3)
    monkeypatch.setattr(webhooks, "MAX_AT_LOG", 3)
    monkeypatch.setattr(webhooks, "MAX_OF_CALLER", 3)
    monkeypatch.setenv("AWP_PUBLISH_CALLBACK_ORIGINS", "http://localhost:7, https://Inner.example/")
    with asyncio.Runner() as runner:
        scene = Scene(clock, runner)
        names = "make verify put find at change remove postpone wake carry sleep address trusts"
        functions = {name: getattr(scene, name) for name in names.split(" ")}
        compare(Path(__file__).parent / "registrations.txt", functions, request)
