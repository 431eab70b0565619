"""Whole conversations at the bridge: `bridge.txt`. --golden writes it anew; read the change.

`* END ann` connects an end of ann's (`-` of nobody known), `/ END` hangs up, and `. SECONDS` of a virtual clock pass.
`END> ITEM` says something: JSON, which has `type` first without quotes, or any text behind a bar. What each end hears
then stands below, and $NUMBER there is the id under which the bridge has passed on a call.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

from awp_publish.http.running import running
from tests.guarded import ANN, BEN
from tests.plugins.actions_json.bridge_client import End, connected
from tests.plugins.actions_json.test_bridge import make_bridge, publish
from tests.virtual_time import run_virtually

KNOWN = {"ann": ANN, "ben": BEN, "-": {}, "wrong": {"authorization": "Bearer wrong"}}
KNOWN |= {"evil": {"origin": "https://evil.example"}, "own": {"origin": "https://shop.example"}}
CHANGING = [
    (r'("(?:elapsed_ms|retry_after_ms)": )\d+', r"\1..."),
    (r'("(?:request_id|observed_at)": ")[^"]+', r"\1..."),
    (r'("token": ")[^"]+', r"\1..."),
    (r"#[0-9a-f]{32}", "#ID"),
    (r"in_process\.[\w-]+", "in_process.ID"),
]


class Scene:
    """A bridge, and who has connected to it."""

    def __init__(self) -> None:
        self.ends: dict[str, tuple[End, AsyncExitStack]] = {}
        self.calls: list[str] = []

    async def act(self, app: object, line: str) -> Iterator[str]:
        mark, _, rest = line.partition(" ")
        if mark == "*":
            name, who = rest.split()
            stack = AsyncExitStack()
            end = await stack.enter_async_context(connected(app, KNOWN[who]))  # type: ignore[arg-type]
            self.ends[name] = end, stack
            return iter([f"  {name} {end.status}"] if end.status != 101 else [])
        if mark == ".":
            await asyncio.sleep(float(rest))
        elif mark == "/":
            await self.ends.pop(rest)[1].aclose()
        elif rest.startswith("| "):
            self.ends[mark[:-1]][0].say_text(rest[2:])
        else:
            kind, _, members = rest.partition(" ")
            for number, call_id in reversed([*enumerate(self.calls)]):
                members = members.replace(f"${number}", call_id)
            self.ends[mark[:-1]][0].say({"type": kind, **json.loads(members or "{}")})
        return self.heard([await end.quiet() for _ in range(4) for end, _ in self.ends.values()])

    def heard(self, _: object) -> Iterator[str]:
        for name, (end, _stack) in self.ends.items():
            while not end.items.empty():
                item = end.items.get_nowait()
                if item["type"] == "action_call" and item["call_id"] not in self.calls and "." in item["call_id"]:
                    self.calls.append(item["call_id"])
                text = json.dumps(item, sort_keys=True, ensure_ascii=False)
                for number, call_id in reversed([*enumerate(self.calls)]):  # a later one may begin like an earlier one
                    text = text.replace(call_id, f"${number}")
                for pattern, replacement in CHANGING:
                    text = re.sub(pattern, replacement, text)
                yield f"  {name} {text}"
            if end.close_code is not None and end.status == 101:
                yield f"  {name} is closed with {end.close_code}"


async def play(text: str) -> list[str]:
    lines, scene, app = list[str](), Scene(), publish(make_bridge())
    async with running(app):
        for line in text.splitlines():
            if line.startswith("# "):
                lines.append(line)
            elif line and not line.startswith("  "):
                lines += [line, *(await scene.act(app, line))]
        for _, stack in scene.ends.values():
            await stack.aclose()
    return lines


def test_conversations_at_the_bridge(request):
    path = Path(__file__).parent / "bridge.txt"
    texts = re.split(r"^(?=# )", path.read_text(), flags=re.MULTILINE)[1:]
    text = "\n\n".join("\n".join(run_virtually(play(each))) for each in texts) + "\n"
    if request.config.getoption("--golden"):
        path.write_text(text)
    assert text == path.read_text()
