"""Send an input to the application, in process, and judge what came of it.

An `Attack` is one application that runs, and all that is known of what it does meanwhile: answers, exceptions, the log,
runs of handlers. It speaks to the application as a server does: only what a server would pass on is passed on.
"""

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from awp_publish.http.exchange import AsgiApp, Message, Scope
from awp_publish.http.running import running
from tools.fuzz.inputs import Http, Input, Socket
from tools.fuzz.site import CREDENTIALS, SECRET, OnPurpose, World

LATE: Final = 2.0
"""Seconds in which everything is answered, but for the talk of a WebSocket: there it is each message.

What the process waited for a processor does not count: a busy machine is nobody's mistake.
"""

LOOK: Final = 0.2
"""Seconds for which a subscription is read."""

PATIENCE: Final = 5
"""How many times that something is waited for."""

GROWTH: Final = 10
"""How many times its input an answer may be."""

SMALL: Final = 16_384
"""Bytes that any answer may have."""

REFUSED: Final = (2, 32_768)
"""How many times its input a refusal may be, and bytes beside it: it says what is wrong, not everything that is."""

CAPTURED: Final[Mapping[bytes, re.Pattern[bytes]]] = {
    b"@confirmation@": re.compile(rb'confirmation[^}]{1,40}?token\\?":\s*\\?"([\w.-]{20,})'),
    b"@job@": re.compile(rb"/agents/jobs/([\w-]{16,})"),
    b"@receipt@": re.compile(rb"awp-receipt\W{1,9}([\w.-]{20,})"),
    b"@task@": re.compile(rb'"(?:task|result)":\s*{[^{}]*?"id":\s*"([\w-]{16,})"'),
    b"@session@": re.compile(rb"(s_[0-9a-f]{32})"),
    b"@resume@": re.compile(rb"resume_token\W{1,5}([\w-]{32})"),
    b"@state@": re.compile(rb'"state":\s*"([\w.-]{20,})"'),
}
"""What answers hand out, and what it is called in inputs."""

_PLACE: Final = re.compile(rb"@(?:confirmation|job|receipt|task|session|resume|state)@")
_INTERNAL: Final = re.compile(rb'"code":\s*-32603\b|"status":\s*"INTERNAL"|"code":\s*"INTERNAL"')
_FAILED: Final = re.compile(rb"HANDLER_FAILED|INVALID_OUTPUT|HANDLER_TIMEOUT|STORE_UNAVAILABLE")
_REFUSING: Final = re.compile(
    rb'"isError":\s*true|"error":\s*{|TASK_STATE_(?:INPUT_REQUIRED|REJECTED)|"input-required"|"rejected"'
)
_ERROR: Final = re.compile(rb'"error":{|\xa5error[\x80-\x8f]')
_FIXED: Final = ("documents", "pages", "som", "status")
"""Doors whose answers are as large as the site is."""

_LISTS: Final = re.compile(rb"tools/list|skills\.list|resources/|prompts/|page\.|session\.")
"""Methods whose answers are as large as the site, or a page of it."""

_TASKS: Final = re.compile(rb'(?:{[^{]{0,80}"result":\s*)?{"tasks":')
"""The beginning of an answer that has earlier tasks of a caller, with all that was said in them."""


_CONFIRMED: Final = ("pay", "erase", "cancel_all_orders")


@dataclass
class Verdict:
    """What came of one input: the statuses of its answers, and what is wrong."""

    statuses: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0


class _Log(logging.Handler):
    """Errors that are logged while an input is answered, unless a handler raised them on purpose."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


class Attack:
    """One application under attack."""

    def __init__(self, app: AsgiApp, world: World, late: float = LATE) -> None:
        self._app = app
        self._world = world
        self._late = late
        self._log = _Log()
        self._loose: list[str] = []

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator["Attack"]:
        """Keep the application running."""
        root = logging.getLogger()
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self._loose.append(_words(context)))
        root.addHandler(self._log)
        logging.getLogger("awp_publish").propagate = True
        try:
            async with running(self._app):
                yield self
        finally:
            root.removeHandler(self._log)

    async def answer(self, given: Input) -> Verdict:
        """Send an input, and judge what comes of it."""
        self._world.clear()
        self._log.records.clear()
        self._loose.clear()
        verdict, captured = Verdict(), _Captured()
        for step in given.steps:
            if isinstance(step, Http):
                await self._request(given, step, captured, verdict)
            else:
                await self._talk(given, step, captured, verdict)
        self._judge_runs(given, captured, verdict)
        return verdict

    # --- HTTP ---

    async def _request(self, given: Input, step: Http, captured: "_Captured", verdict: Verdict) -> None:
        path, _, query = captured.put_in(step.target).partition(b"?")
        body = captured.put_in(step.body)
        scope = _scope("http", step, captured, path, query.partition(b"#")[0])
        scope["method"] = step.method
        answer, begun = _Answer(), own_time()
        follows = b"ubscribe" in path + body  # a task that waits for its caller is followed until the caller leaves
        sent = len(body) if follows and step.sent is None else step.sent
        body_of = _Body(body, step.chunks, sent, stays=LOOK if follows else 0.0)
        raised = await self._run(scope, body_of.receive, answer.send, verdict)
        verdict.slowest = max(verdict.slowest, own_time() - begun)
        if raised:
            return
        if answer.status is None:
            if sent is None:
                verdict.wrong.append("there was no answer")
            verdict.statuses.append("left")
            return
        verdict.statuses.append(str(answer.status))
        verdict.wrong += answer.flaws(step.method, has_left=sent is not None)
        captured.look_at(answer.head + answer.body)
        self._judge_answer(given, answer.status, answer.body, captured, verdict)

    async def _run(self, scope: Scope, receive: Any, send: Any, verdict: Verdict) -> bool:
        """Whether the application raised, or did not end."""
        try:
            async with asyncio.timeout(PATIENCE * self._late):
                await self._app(scope, receive, send)
        except TimeoutError:
            verdict.wrong.append(f"no end after {PATIENCE * self._late:g} seconds")
            return True
        except OnPurpose:
            verdict.statuses.append("raised on purpose")  # a page's own failure is the server's to answer
            return True
        except Exception as error:
            verdict.wrong.append(f"the application raised {type(error).__name__}: {str(error)[:200]}")
            return True
        return False

    # --- WebSocket ---

    async def _talk(self, given: Input, step: Socket, captured: "_Captured", verdict: Verdict) -> None:
        scope = _scope("websocket", step, captured, b"/awp", b"")
        scope.update(subprotocols=[], scheme="wss", extensions={"websocket.http.response": {}})
        received: asyncio.Queue[Message] = asyncio.Queue()
        sent: asyncio.Queue[Message | None] = asyncio.Queue()
        received.put_nowait({"type": "websocket.connect"})
        talking = asyncio.create_task(self._serve_socket(scope, received, sent, verdict))
        try:
            opening = await self._hear(sent, verdict)
            if opening is None or opening["type"] != "websocket.accept":
                verdict.statuses.append("denied")
                return
            is_open = True
            for frame in step.frames:
                said = captured.put_in(frame if isinstance(frame, bytes) else frame.encode("utf-8", "replace"))
                kind = {"bytes": said} if isinstance(frame, bytes) else {"text": said.decode("utf-8", "replace")}
                received.put_nowait({"type": "websocket.receive", **kind})
                if step.waits:
                    is_open = await self._hear_one(given, sent, captured, verdict)
                if not is_open:
                    return
            for _ in () if step.waits else step.frames:
                if not await self._hear_one(given, sent, captured, verdict):
                    return
        finally:
            received.put_nowait({"type": "websocket.disconnect", "code": 1006})
            _, late = await asyncio.wait({talking}, timeout=PATIENCE * self._late)
            if late:
                verdict.wrong.append("the connection did not end")
                talking.cancel()
                await asyncio.wait({talking}, timeout=PATIENCE * self._late)

    async def _serve_socket(self, scope: Scope, received: Any, sent: Any, verdict: Verdict) -> None:
        try:
            await self._app(scope, received.get, sent.put)
        except Exception as error:
            verdict.wrong.append(f"the application raised {type(error).__name__}: {str(error)[:200]}")
        finally:
            sent.put_nowait(None)

    async def _hear(self, sent: Any, verdict: Verdict) -> Message | None:
        begun = own_time()
        try:
            async with asyncio.timeout(PATIENCE * self._late):
                message: Message | None = await sent.get()
        except TimeoutError:
            verdict.wrong.append(f"nothing was said for {PATIENCE * self._late:g} seconds")
            return None
        verdict.slowest = max(verdict.slowest, own_time() - begun)
        return message

    async def _hear_one(self, given: Input, sent: Any, captured: "_Captured", verdict: Verdict) -> bool:
        """Whether one more message came, and the connection is open after it."""
        while True:
            message = await self._hear(sent, verdict)
            if message is None or message["type"] != "websocket.send":
                verdict.statuses.append(f"closed {message.get('code')}" if message else "ended")
                return False
            said = message.get("bytes") or message["text"].encode("utf-8", "surrogatepass")
            captured.look_at(said)
            if b'"type":"event"' in said or b"\xa4type\xa5event" in said:
                continue
            is_error = _ERROR.search(said) is not None
            verdict.statuses.append("error" if is_error else "ok")
            self._judge_answer(given, 400 if is_error else 200, said, captured, verdict)
            return True

    # --- Judging ---

    def _judge_answer(self, given: Input, status: int, body: bytes, captured: "_Captured", verdict: Verdict) -> None:
        wrong, failures = verdict.wrong, self._world.failures
        is_listed = given.door in _FIXED or _LISTS.search(given.text) is not None or _TASKS.match(body) is not None
        if status >= 500 and not failures and b"TEMPORARILY_UNAVAILABLE" not in body:
            wrong.append(f"status {status}, which no handler caused: {_shown(body)}")
        elif not (failures or is_listed) and (_INTERNAL.search(body) or _FAILED.search(body)):
            wrong.append(f"a failure that no handler caused: {_shown(body)}")
        if SECRET.encode() in body or b"Traceback (most" in body:
            wrong.append("an answer tells of an exception")
        if is_listed:
            return
        size = max(given.size, captured.sent)
        most = max(GROWTH * size, SMALL)
        if status >= 400 or _REFUSING.search(body):
            most = min(most, REFUSED[0] * size + REFUSED[1])
        if len(body) > most:
            wrong.append(f"an answer of {len(body)} bytes to {size}: {_shown(body)}")

    def _judge_runs(self, given: Input, captured: "_Captured", verdict: Verdict) -> None:
        world, wrong = self._world, verdict.wrong
        if not given.is_browsing or any("no action" not in run for run in world.forbidden):
            wrong += world.forbidden
        guarded = [name for name in ("pay", "close_account", "send", "desk_lend", "desk_give_back") if world.runs[name]]
        if guarded and not any(token in given.text for token in CREDENTIALS):
            wrong.append(f"{', '.join(guarded)} ran without credentials")
        for name in _CONFIRMED:
            if world.runs[name] > captured.confirmations:
                wrong.append(f"{name} ran {world.runs[name]} times with {captured.confirmations} confirmations")
        for record in self._log.records:
            raised = record.exc_info[1] if record.exc_info else None
            if record.exc_info is not None and not world.failures and not isinstance(raised, OnPurpose):
                words = f"{type(raised).__name__}: {str(raised)[:100]}"
                wrong.append(f"{record.name} logged: {record.getMessage()[:100]}: {words}")
        wrong += self._loose
        if verdict.slowest > self._late:
            wrong.append(f"an answer took {verdict.slowest:.1f} seconds")


class _Captured:
    """What earlier answers of a talk have handed out. `confirmations` counts different tokens, `sent` bytes."""

    def __init__(self) -> None:
        self.sent = 0
        self._values: dict[bytes, bytes] = {}
        self._tokens: set[bytes] = set()

    @property
    def confirmations(self) -> int:
        return len(self._tokens)

    def look_at(self, answer: bytes) -> None:
        for name, pattern in CAPTURED.items():
            if found := pattern.search(answer):
                self._values[name] = found[1]
                if name == b"@confirmation@":
                    self._tokens.add(found[1])

    def put_in(self, text: bytes) -> bytes:
        said = _PLACE.sub(lambda found: self._values.get(found[0], b"none"), text) if b"@" in text else text
        self.sent += len(said)
        return said


class _Body:
    """A request's body in pieces.

    The caller stays, unless `sent` says after how many bytes it leaves, and `stays` how many seconds after them.
    """

    def __init__(self, body: bytes, chunks: int, sent: int | None, *, stays: float = 0.0) -> None:
        self._stays = stays
        size = max(1, -(-len(body) // chunks))
        self._pieces = [body[start : start + size] for start in range(0, len(body), size)] or [b""]
        self._leaves = sent is not None
        self._ends = sent is None or sent >= len(body)
        if not self._ends:
            self._pieces = [body[:sent]]

    async def receive(self) -> Message:
        if self._pieces:
            piece = self._pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(self._pieces) or not self._ends}
        if not self._leaves:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(self._stays)
        return {"type": "http.disconnect"}


class _Answer:
    """What the application sends, held against the ASGI specification and HTTP."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._is_over = False
        self._flaws: list[str] = []

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if self.status is not None:
                self._flaws.append("two answers")
            self.status, self.headers = message["status"], list(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            if self.status is None or self._is_over:
                self._flaws.append("a body without an answer")
            self._pieces.append(message.get("body", b""))
            self._is_over = not message.get("more_body", False)

    @property
    def head(self) -> bytes:
        return b"".join(b"%s: %s\n" % pair for pair in self.headers)

    @property
    def body(self) -> bytes:
        return b"".join(self._pieces)

    def flaws(self, method: str, *, has_left: bool) -> list[str]:
        """What is wrong with the answer as HTTP. Who has left need not be told all of it."""
        flaws = list(self._flaws)
        if has_left and not self._is_over:
            return flaws
        if not self._is_over:
            flaws.append("the answer did not end")
        for name, value in self.headers:
            if not _TOKEN.fullmatch(name) or _BROKEN.search(value):
                flaws.append(f"a header that no server sends: {name[:50]!r}: {value[:50]!r}")
        declared = [value for name, value in self.headers if name == b"content-length"]
        if declared and method != "HEAD" and self.status != 304 and declared != [b"%d" % len(self.body)]:
            flaws.append(f"content-length is {declared}, the body has {len(self.body)} bytes")
        return flaws


_TOKEN: Final = re.compile(rb"[a-z0-9!#$%&'*+.^_`|~-]+")
_BROKEN: Final = re.compile(rb"[\x00\r\n]")


def _scope(kind: str, step: Http | Socket, captured: _Captured, path: bytes, query: bytes) -> Scope:
    """The scope as a server makes it: names in lower case, no line breaks in values, an address without controls."""
    headers = [(name.lower(), _BROKEN.sub(b"", captured.put_in(value)).strip(b" \t")) for name, value in step.headers]
    return {
        "type": kind,
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "scheme": "https",
        "path": unquote(path.decode("ascii", "replace")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": headers,
        "server": ("shop.example", 443),
        "client": (step.client, 4711) if step.client else None,
        "state": {},
    }


def own_time() -> float:
    """Seconds that go by while this thread runs, or waits for anything but a processor."""
    try:
        waited = int(_SCHEDULE.read_text().split()[1])
    except (OSError, ValueError, IndexError):  # only Linux tells
        waited = 0
    return time.monotonic() - waited / 1e9


_SCHEDULE: Final = Path("/proc/thread-self/schedstat")


def _shown(body: bytes) -> str:
    return body[:300].decode("utf-8", "replace")


def _words(context: Mapping[str, Any]) -> str:
    error = context.get("exception")
    return f"left behind: {context.get('message')} {type(error).__name__}: {str(error)[:200]}"
