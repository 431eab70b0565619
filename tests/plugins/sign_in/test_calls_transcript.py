"""What comes of calls with a token, by action and by the site's mood: `transcripts/calls.txt`.

The mood is that the person is known, is blocked, that the site fails when it is asked, or that the store is away.
Answers have their status, their code and words, the error of the challenge, and the paths that the site was asked for.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware

from awp_publish.stores.memory import MemoryStore
from awp_publish.stores.store import unavailable
from tests.client import TestClient
from tests.function_transcripts import compare
from tests.plugins.sign_in.shop import URL, Agent, make_shop
from tests.plugins.sign_in.test_asking import WAYS, CountPasses


class Store(MemoryStore):
    """Loses its server and finds it again."""

    is_away = False

    async def run(self, steps, *, durable=False):
        if self.is_away:
            raise unavailable("The store is away.")
        return await super().run(steps, durable=durable)


def test_calls_with_a_token_go_as_in_the_transcript(request, open_client):
    mood, passes, store = [""], Counter[str](), Store()

    def find_user(visit: Any) -> Any:
        if mood[0] == "fails":
            raise LookupError
        return None if mood[0] == "blocked" else visit.session.get("user")

    app = make_shop(user=find_user, settings={"plugins": ["mcp", "jobs"], "store": store})
    app.user_middleware.append(Middleware(CountPasses, passes=passes))
    for name, options in WAYS.items():
        declare = app.state.site.agent if name == "unrouted" else app.state.site.action

        @declare(name, auth_required=True, **options)
        async def give() -> str:
            """Give something."""
            return "given"

        if name != "unrouted":
            app.post(f"/{name}")(give)
    http = open_client(app)
    tokens = Agent(http, TestClient(app, base_url=URL)).sign_in("ann")
    known = {"the person's": f"Bearer {tokens['access_token']}", "unknown": f"Bearer awp_at_{'x' * 86}"}
    known |= {"refresh": f"Bearer {tokens['refresh_token']}", "another kind of": "Basic YTpi"}

    def call(action: str, of_mood: str = "", token: str = "the person's", inputs: Any = None) -> list[object]:
        mood[0], store.is_away = of_mood, of_mood == "away"
        passes.clear()
        headers = {"authorization": known[token]} if token else {}
        answer = http.post(f"/agents/{action}/invoke", json={"input": inputs or {}}, headers=headers)
        store.is_away = False
        response = answer.json()
        facts = (
            [response["code"], response["detail"]]
            if "code" in response
            else [response if answer.status_code == 200 else ""]
        )
        challenge = answer.headers.get("www-authenticate", "").replace(", ", " ").split()
        errors = [part for part in challenge if part.startswith("error=")]
        passes.pop("/background", None)  # a job may run later
        return [answer.status_code, *facts, *errors, dict(sorted(passes.items()))]

    compare(Path(__file__).parent / "transcripts" / "calls.txt", {"call": call}, request)
