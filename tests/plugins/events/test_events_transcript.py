"""What becomes of a webhook, of audiences, cursors and filters: `functions.txt`, in the words of
`tests/function_transcripts.py`.

`hook` makes the webhook that the lines below it are about, at a second that stands still until `sleep`.
"""

import base64
import secrets
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from awp_publish import Principal
from awp_publish.http.outgoing import Posted
from awp_publish.model import Event
from awp_publish.plugins.events import hook
from awp_publish.plugins.events.audiences import log_of, logs_for, read_audience, read_cursor, write_cursor
from awp_publish.plugins.events.filters import filters_of, is_match
from tests.function_transcripts import compare

KEY = base64.b64encode(b"k" * 24).decode()


class Scene:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def hook(self, members: dict[str, Any]) -> Any:
        facts = {"id": "h", "kind": "mcp", "principal": "ann", "url": "https://receiver.example/in", **members}
        facts["logs"] = tuple(facts.get("logs", ()))
        self.made = hook.Webhook(**facts)
        return self.state()

    def state(self) -> Any:
        """Return the record as the store has it, without what is as at first."""
        kept = hook.read_webhook(self.made.write())
        assert kept == self.made
        fresh = hook.Webhook(id="", kind="", principal="", url="")
        facts = {name: getattr(kept, name) for name in kept.__slots__ if name != "raw"}
        return {name: value for name, value in facts.items() if value != getattr(fresh, name)}

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def fail(self, times: int) -> Any:
        return self.note(*[500] * times)

    def note(self, *answers: Any) -> Any:
        results = [self.made.note(answer if isinstance(answer, str) else Posted(answer, b"")) for answer in answers]  # type: ignore[arg-type]
        return [results[-3:], self.state()]

    def signed(self, kind: str = "", headers: dict[str, str] | None = None) -> Any:
        message = self.made.control(kind, b"{}") if kind else self.made.message("msg_1", b"{}", headers or {})
        return [message.id, self.made.signed(message)]

    def try_again(self, key: list[Any], attempts: int, times: int = 1) -> Any:
        for number in range(times):
            self.made.try_again([*key, number] if times > 1 else key, attempts)
        retries = self.made.retries
        return [len(retries), *retries[:1], *retries[-2:]]

    def give_up(self, key: list[Any]) -> Any:
        self.made.give_up(key)
        return self.made.retries

    def rotate(self, secret: str | None, before: str | None) -> Any:
        self.made.secret = secret
        self.made.rotate(before)
        return self.made.old_secret

    def kept(self) -> Any:
        return [self.made.key, self.made.seconds, self.made.has_expired(), self.made.due_in(5)]


def _event(name: str) -> Any:
    return Event(id=name, description="", payload={}, inputs={})


def _logs(*given: Any) -> Any:
    return list(logs_for(_event("sold"), Principal(given[0], frozenset(given[1:])) if given else None))


def _cursor(positions: dict[str, Any]) -> Any:
    text = write_cursor({log: (epoch, number) for log, (epoch, number) in positions.items()})
    return [text, read_cursor(_event("sold"), text), read_cursor(_event("other"), text)]


def _read(*parts: Any) -> Any:
    import orjson

    return read_cursor(_event("sold"), base64.urlsafe_b64encode(orjson.dumps(list(parts))).decode().rstrip("="))


def _audience(audience: Any, people: str | None = "", issuer: str = "") -> Any:
    return read_audience("site.emit()", Principal(audience, issuer=issuer) if issuer else audience, people)


def test_webhooks_and_audiences_of_events_are_as_in_the_transcript(request, monkeypatch):
    scene = Scene()
    monkeypatch.setattr(hook, "time", SimpleNamespace(time=lambda: scene.now))
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size: "R" * size)
    names = ("hook", "state", "sleep", "note", "fail", "signed", "try_again", "give_up", "rotate", "kept")
    functions: dict[str, Any] = {name: getattr(scene, name) for name in names}
    functions |= {"logs": _logs, "log": log_of, "cursor": _cursor, "read": _read, "audience": _audience}
    functions |= {"read_text": lambda text: read_cursor(_event("sold"), text), "filters": filters_of, "match": is_match}
    functions["secret"] = lambda secret: len(_secret(secret))
    compare(Path(__file__).parent / "functions.txt", functions, request)


def _secret(secret: str) -> bytes:
    try:
        return hook.read_secret(secret)
    except hook.RefusedCallback as refused:
        raise ValueError(refused.detail) from refused
