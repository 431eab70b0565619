"""The plain door: an action at an address of its own, its inputs flat, for a client that knows nothing but HTTP."""

from enum import StrEnum
from typing import Annotated, Any

import pytest
from fastapi import FastAPI, File, Form, Query, Response, UploadFile
from hypothesis import HealthCheck, given, settings, strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from awp_publish import AgentPublisher, DeclarationError, Paths
from tests.client import TestClient
from tests.examples import examples
from tests.guarded import KEYS, invoke, known_callers, make_shop, poll, publish, status_and_code

AT = "/agents/actions"


class Sort(StrEnum):
    newest = "newest"
    price = "price"


def make_shelves() -> FastAPI:
    """Make a shop with a route for each way in which inputs travel."""
    origins = ["https://app.example"]
    site, app = make_shop(authenticate=known_callers(), secret_keys=KEYS, allow_origins=origins), FastAPI()

    @app.get("/shelves/{shelf}/search")
    @site.action("search")
    async def search(
        shelf: int,
        q: str,
        sort: Sort = Sort.newest,
        used: bool = False,
        price: float | None = None,
        tag: Annotated[list[int], Query()] = [],  # noqa: B006
        mixed: int | str = 0,
    ) -> dict[str, Any]:
        """Search a shelf."""
        return {"shelf": shelf, "q": q, "sort": sort, "used": used, "price": price, "tag": tag, "mixed": mixed}

    @app.post("/reviews")
    @site.action("review")
    async def review(title: Annotated[str, Form()], stars: Annotated[int, Form(ge=1, le=5)] = 3) -> dict[str, Any]:
        """Review a book."""
        return {"title": title, "stars": stars}

    @app.post("/covers")
    @site.action("add_cover")
    async def add_cover(title: Annotated[str, Form()], cover: Annotated[UploadFile, File()]) -> dict[str, Any]:
        """Add a cover."""
        return {"title": title, "bytes": list(await cover.read())}

    @app.delete("/reviews/{review_id}")
    @site.action("delete_review")
    async def delete_review(review_id: int) -> int:
        """Delete a review."""
        return review_id

    @app.get("/picture")
    @site.action("picture", idempotency="24h")
    async def picture(as_page: bool = False) -> Response:
        """Show a picture."""
        return HTMLResponse("<p>é</p>") if as_page else Response(b"\x89PNG\xff", media_type="image/png")

    @site.agent("order", idempotency={"window": "24h", "key_field": "order_key"}, confirm=True, requires=["look"])
    async def order(title: str, lines: dict[str, int], copies: int = 1) -> list[Any]:
        """Order books."""
        return [title, lines, copies]

    @site.agent("look")
    async def look() -> str:
        """Look at books."""
        return "books"

    @site.agent("mine", auth_required=True, rate_limit="2/day")
    async def mine() -> str:
        """What is mine."""
        return "mine"

    @site.agent("secret", audience="buy")
    async def secret() -> str:
        """Show a secret."""
        return "secret"

    texts = site.agent("texts", description="Works on texts.")

    @texts.operation("shout")
    async def shout(text: str) -> str:
        """Write it large."""
        return text.upper()

    @texts.operation("count", scopes=["buy"])
    async def count(words: list[str]) -> int:
        """Count words."""
        return len(words)

    app.add_middleware(AgentPublisher, site=site)
    return app


@pytest.fixture(scope="module")
def shop():
    with TestClient(make_shelves(), base_url="https://shop.example") as client:
        yield client


# --- Inputs ---


def test_too_much_is_refused_with_a_message(shop):
    form = {"content-type": "multipart/form-data; boundary=x"}
    fields = shop.get(f"{AT}/search?" + "&".join(f"a{number}=1" for number in range(1001)))
    head = shop.post(f"{AT}/review", content=b"--x\r\n" + b"a" * 9000 + b"\r\n\r\n\r\n--x--", headers=form)
    body = shop.post(f"{AT}/review", data={"title": "x" * 1_100_000})
    untyped = shop.post(f"{AT}/review", content=b"title=a")
    assert [status_and_code(answer) for answer in (fields, head, body, untyped)] == [
        (422, "INVALID_INPUT"),
        (422, "INVALID_INPUT"),
        (413, "BODY_TOO_LARGE"),
        (415, "UNSUPPORTED_MEDIA_TYPE"),
    ]


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content_type=st.sampled_from(
        [
            "application/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "multipart/form-data",
        ]
    ),
    pieces=st.lists(
        st.one_of(
            st.sampled_from(
                [
                    b"--x",
                    b"--x--",
                    b"\r\n",
                    b"\r\n\r\n",
                    b'Content-Disposition: form-data; name="title"',
                    b"; filename=a",
                ]
            ),
            st.sampled_from([b"title=", b"&stars=", b"%ff", b"{", b'"title":', b"1e999", b"\\ud800", b"[" * 99, b"\0"]),
            st.binary(max_size=9),
        ),
        max_size=12,
    ),
)
def test_no_body_of_a_stranger_is_a_failure_of_ours(shop, content_type, pieces):
    answer = shop.post(f"{AT}/review", content=b"".join(pieces), headers={"content-type": content_type})
    assert answer.status_code < 500


def test_three_of_many_similar_actions_are_suggested(open_client):
    site = make_shop()
    for number in range(1, 6):
        site.agent(f"search_{number}", description="Search.")(lambda: None)
    detail = publish(site, open_client).get(f"{AT}/search_").json()["detail"]
    assert detail.partition("Did you mean ")[2].count("search_") == 3


# --- Gates, by header and as members ---


def test_an_input_that_is_called_like_a_member_beside_the_inputs_is_an_input(open_client):
    site = make_shop(secret_keys=KEYS)

    @site.agent("confirm_email", confirm=True)
    async def confirm_email(confirmation: str) -> str:
        """Confirm an address."""
        return confirmation

    client = open_client(AgentPublisher(Starlette(), site=site))
    token = client.post(f"{AT}/confirm_email", json={"confirmation": "123"}).json()["confirmation"]["token"]
    headers = {"awp-confirmation": token}
    assert client.post(f"{AT}/confirm_email", json={"confirmation": "123"}, headers=headers).json() == "123"


# --- Answers ---


@pytest.mark.parametrize("kind", ["application/pdf", "text/csv", "application/json"])
def test_a_file_is_given_and_replayed_as_a_file_to_save(open_client, kind):
    disposition = "attachment; filename=\"rates.x\"; filename*=UTF-8''%E2%82%AC%20rates.x"
    site, app = make_shop(), FastAPI()

    @app.get("/rates")
    @site.action("rates", idempotency="24h", outputs={})
    async def rates() -> Response:
        """Save the rates."""
        return Response(b'{"a": 1}', media_type=kind, headers={"content-disposition": disposition})

    client = publish(site, open_client, app)
    direct = client.get("/rates")
    first, again = (client.get(f"{AT}/rates", headers={"idempotency-key": "k"}) for _ in range(2))
    for answer in (first, again):
        assert answer.headers["content-disposition"] == disposition
        assert (answer.headers["content-type"], answer.content) == (direct.headers["content-type"], direct.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert "content-disposition" not in invoke(client, "rates").headers


@pytest.mark.needs("jobs")
def test_a_background_action_becomes_a_job(open_client):
    site = make_shop()

    async def ship(request: Request) -> JSONResponse:
        """Ship an order."""
        return JSONResponse(request.query_params["order"])

    inputs = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
    handler = site.action("ship", execution="async", inputs=inputs, outputs=str)(ship)
    client = open_client(AgentPublisher(Starlette(routes=[Route("/ship", handler)]), site=site))
    accepted = client.get(f"{AT}/ship?order=7")
    assert accepted.status_code == 202
    assert poll(client, accepted.headers["location"]).json()["result"] == "7"


# --- Addresses ---


def test_the_door_stands_where_the_site_says(open_client):
    site = make_shop(paths=Paths(root="/do"))

    @site.agent("look")
    async def look() -> str:
        """Look."""
        return "books"

    client = open_client(AgentPublisher(Starlette(), site=site))
    assert client.get("/agent.json").json()["actions"][0]["endpoint"] == "/do/actions/look"
    assert client.post("/do/actions/look").json() == "books"


@pytest.mark.needs("woa")
def test_an_agent_whose_address_is_that_of_an_action_is_refused_at_start(open_client):
    site = make_shop()

    @site.agent("actions")
    async def actions() -> str:
        """List."""
        return ""

    @site.agent("invoke")
    async def invoke() -> str:
        """Invoke."""
        return ""

    with pytest.raises(DeclarationError, match="another address of ours"):
        open_client(AgentPublisher(Starlette(), site=site))
