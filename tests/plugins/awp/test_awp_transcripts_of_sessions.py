"""Sessions second by second: how many, how long and whose. `transcripts/open_sessions.txt`.

`# SESSIONS` begins a process that keeps so many. A line `> WHAT ARGUMENTS` is something that happens, and below it
stands what came of it, and each open session: its connection, its caller, and seconds. --golden writes these anew; read
the change.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from sys import intern
from typing import Any

from awp_publish import Awp
from awp_publish.browsing.errors import AwpError
from awp_publish.plugins.awp.sessions import OpenSession, Sessions, Turns
from tests.function_transcripts import compare as compare_functions
from tests.virtual_time import run_virtually

TRANSCRIPTS = Path(__file__).parent / "transcripts"


class Scene:
    def __init__(self, number: int) -> None:
        self.now = 1000.0
        self.sessions = Sessions(Awp(sessions=number), ("https://shop.example",), lambda: self.now)
        self.opened: dict[str, OpenSession] = {}

    def act(self, line: str) -> object:
        what, _, rest = line.partition(" ")
        words, _, params = rest.partition(" {")
        match what, [intern(word) for word in words.split()]:  # each connection is one object
            case "create" | "import", [name, connection, *whose]:
                principal, address = [text.removeprefix("-") for text in (*whose, "", "")[:2]]
                given = json.loads("{" + params) if params else {}
                if what == "create":
                    made = self.sessions.create(connection, principal, given, 30.0, address)
                else:
                    exported = self.opened[given.pop("of")].session.export()
                    made = self.sessions.restore(connection, principal, exported, given, 30.0, address)
                self.opened[name] = made
                browser = made.session.browser
                limits, who = browser.limits, f"{browser.user_agent[:9]} in {browser.locale}"
                return f"{who}, {made.ttl_ms} ms, timeout {made.timeout:g}, {limits.pages} of {limits.page_bytes} bytes"
            case "wait", [seconds]:
                self.now += float(seconds)
            case "find", [name, connection, *principal]:
                self.sessions.find(connection, "".join(principal), self.id(name))
            case "resume", [name, connection, *more]:
                token = self.opened[name].token if "wrong" not in more else "é"
                self.sessions.resume(connection, "".join(more).removesuffix("wrong"), self.id(name), token)
            case "touch", [name]:
                self.sessions.touch(self.opened[name])
            case "say", [name]:
                said = self.sessions.summarise(self.opened[name])
                return {**said, "session_id": name}
            case "of", [connection]:
                return [self.name(each) for each in self.sessions.of(connection)]
            case "release", [connection]:
                self.sessions.release(connection)
            case "sweep", [*at_once]:
                self.sessions.sweep(at_once=bool(at_once))
            case "close", [name]:
                self.sessions.close(self.opened[name])
            case "clear", []:
                self.sessions.clear()
            case "limits", []:
                return self.sessions.describe_limits()
            case _:
                raise AssertionError(line)
        return None

    def id(self, name: str) -> str:
        return self.opened[name].id if name in self.opened else name

    def name(self, opened: OpenSession) -> str:
        return next(name for name, each in self.opened.items() if each is opened)

    def contents(self) -> Iterator[str]:
        for each in self.sessions._open.values():
            whose = f"{each.owner or 'nobody'} ({each.principal or '-'} {each.address or '-'})"
            times = f"used {self.now - each.last_used:g} ago, ends in {each.expires - self.now:g}"
            yield f"  {self.name(each)} of {whose}, {times}"


def test_open_sessions_are_limited_as_in_the_transcript(request):
    path, lines = TRANSCRIPTS / "open_sessions.txt", list[str]()
    scene = Scene(1)
    for line in path.read_text().splitlines():
        if line.startswith("# "):
            scene = Scene(int(line.split()[1]))
        if line.startswith("# ") or not line:
            lines.append(line)
        if line.startswith("> "):
            try:
                answer = scene.act(line[2:])
            except AwpError as error:
                details = {**error.details, "session_id": "..."} if "session_id" in error.details else error.details
                answer = f"! {error.code} {error.message.partition(': ')[0]} {details}"
            lines += [line, *([f"  {answer}"] if answer is not None else []), *scene.contents()]
    if request.config.getoption("--golden"):
        path.write_text("\n".join(lines) + "\n")
    assert lines == path.read_text().splitlines()


def turns(*requests: Any) -> list[str]:
    """Return when requests `[NAME, SECOND, PAGE OR NULL, SECONDS]` begin and end, and what is so at each second."""
    lines = list[str]()

    async def request(line: Turns, name: str, at: float, page: str | None, seconds: float) -> None:
        await asyncio.sleep(at)
        async with line.take(page):
            lines.append(f"{asyncio.get_running_loop().time():g} {name} begins")
            await asyncio.sleep(seconds)
        busy = f"{'busy' if line.is_busy else 'idle'}{' with the whole' if line.has_whole else ''}"
        lines.append(f"{asyncio.get_running_loop().time():g} {name} ends: {busy}")

    async def run() -> None:
        line = Turns()
        await asyncio.gather(*(request(line, *each) for each in requests))

    run_virtually(run())
    return lines


def test_turns_of_sessions_go_as_in_the_transcript(request):
    compare_functions(TRANSCRIPTS / "turns.txt", {"turns": turns}, request)
