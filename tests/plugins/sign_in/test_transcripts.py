"""What sign-in answers to programs and people, whole: `transcripts`, in the words of `tests/transcript.py`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.responses import JSONResponse

from awp_publish import ApiKey, Client, Principal
from tests.client import TestClient
from tests.plugins.sign_in.shop import BACK, URL, make_shop
from tests.transcript import compare

TRANSCRIPTS = Path(__file__).parent / "transcripts"
CHANGING = [
    (r'"client_id_issued_at":\d+', '"client_id_issued_at":TIME'),
    (r"\d+ [A-Z][a-z]+ 20\d\d", "DAY"),
    (r"(set-cookie: (session|awp_sign_in)=)[^;]+", r"\1..."),
    (r"(awp_[a-z]t_|[?&;](?:request|code)=|%3Frequest%3D|value=\")[\w.-]{40,}", r"\1..."),
]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    clients = [
        Client("partner", "Partner", redirects=[BACK], secret="p" * 40, scopes=["orders", "profile"]),
        Client("the partner", "The partner", secret="a secret: 100% + more" * 2, scopes=["orders"]),
        Client("local", "Local", redirects=["http://127.0.0.1/callback"]),
        Client("two", "Two", redirects=[BACK, "https://agent.example/other"]),
    ]
    shop = make_shop(
        clients=clients,
        scopes={"orders": "Place orders", "profile": "See your name"},
        settings={
            "plugins": ["mcp", "overview"],
            "authenticate": ApiKey({"the-owner": Principal("owner", frozenset({"operator"}))}),
        },
    )

    @shop.get("/refuse", response_model=None)
    @shop.state.site.action("refuse", auth_required=True)
    async def refuse() -> JSONResponse:
        """Refuse, and set a cookie."""
        answer = JSONResponse({"detail": "No."}, 409)
        answer.set_cookie("seen", "1")
        return answer

    for number in range(9):

        @shop.get(f"/more/{number}")
        @shop.state.site.action(f"more_{number}", auth_required=True, scopes=["profile"])
        async def more() -> str:
            """Do more."""
            return "more"

    with TestClient(shop, base_url=URL) as client:
        yield client


@pytest.mark.parametrize("name", ["authorize", "clients", "connections", "consent", "tokens"])
def test_signing_in_goes_as_in_the_transcripts(name, client, request):
    compare(TRANSCRIPTS / f"{name}.txt", client, request, *CHANGING)
