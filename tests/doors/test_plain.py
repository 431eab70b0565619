"""The plain door: an action at an address of its own, its inputs flat, for a client that knows nothing but HTTP."""

import base64
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
from tests.calls.test_prerequisites import poll
from tests.examples import examples
from tests.guarded import ANN, KEYS, invoke, known_callers, make_shop, publish, told

AT = "/agents/actions"


class Sort(StrEnum):
    newest = "newest"
    price = "price"


@pytest.fixture
def shop(open_client):
    """A shop with a route for each way in which inputs travel."""
    site, app = make_shop(authenticate=known_callers(), secret_keys=KEYS), FastAPI()

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

    @site.agent("mine", auth_required=True, rate_limit="2/minute")
    async def mine() -> str:
        """What is mine."""
        return "mine"

    app.add_middleware(AgentPublisher, site=site)
    return open_client(app)


# --- Inputs ---


def test_inputs_in_the_query_are_read_by_the_schema(shop):
    answer = shop.get(f"{AT}/search?shelf=3&q=5&sort=price&used=yes&price=2.5&tag=1&tag=2&mixed=7")
    assert answer.status_code == 200
    assert answer.json() == {
        "shelf": 3,
        "q": "5",
        "sort": "price",
        "used": True,
        "price": 2.5,
        "tag": [1, 2],
        "mixed": "7",  # a text may be one, as pydantic has it
    }


def test_one_value_is_a_list_where_a_list_is_asked_for(shop):
    assert shop.get(f"{AT}/search?shelf=3&q=x&tag=1").json()["tag"] == [1]


def test_an_empty_field_that_cannot_be_a_text_is_left_out(shop):
    assert shop.get(f"{AT}/search?shelf=3&q=&price=&used=").json() == {
        "shelf": 3,
        "q": "",
        "sort": "newest",
        "used": False,
        "price": None,
        "tag": [],
        "mixed": 0,
    }


def test_inputs_of_a_form_a_json_object_and_a_multipart_form_are_the_same(shop):
    wanted = {"title": "Emma", "stars": 4}
    assert shop.post(f"{AT}/review", data=wanted).json() == wanted
    assert shop.post(f"{AT}/review", json=wanted).json() == wanted
    assert shop.post(f"{AT}/review", files={"title": (None, "Emma"), "stars": (None, "4")}).json() == wanted
    assert shop.post(f"{AT}/review?stars=4", data={"title": "Emma"}).json() == wanted


def test_members_of_json_are_taken_as_they_are(shop):
    answer = shop.post(f"{AT}/review", json={"title": "Emma", "stars": "4"})
    assert told(answer) == (422, "INVALID_INPUT")
    assert answer.json()["errors"][0]["pointer"] == "/stars"


def test_a_file_is_sent_as_a_file_or_as_base64(shop):
    sent = b'\x00\xff\r\n--no boundary"'
    wanted = {"title": "Emma", "bytes": list(sent)}
    assert shop.post(f"{AT}/add_cover", data={"title": "Emma"}, files={"cover": ("a;b.png", sent)}).json() == wanted
    text = base64.b64encode(sent).decode()
    assert shop.post(f"{AT}/add_cover", json={"title": "Emma", "cover": text}).json() == wanted
    assert shop.post(f"{AT}/add_cover", data={"title": "Emma", "cover": text}).json() == wanted


def test_a_method_without_a_body_takes_its_inputs_in_the_query(shop):
    assert shop.delete(f"{AT}/delete_review?review_id=7").json() == 7


def test_an_object_in_a_form_is_json(shop):
    sent = {"title": "Emma", "lines": '{"a": 2}'}
    receipt = shop.post(f"{AT}/look").headers["awp-receipt"]
    asked = shop.post(f"{AT}/order", data=sent, headers={"awp-receipt": receipt}).json()
    assert '"a": 2' in asked["confirmation"]["summary"]


BAD: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "a text for a number": ("search?shelf=x&q=a", {}, 422, "INVALID_INPUT"),
    "a number too large": ("search?shelf=99999999999999999999999&q=a", {}, 422, "INVALID_INPUT"),
    "not a number": ("search?shelf=1&q=a&price=nan", {}, 422, "INVALID_INPUT"),
    "digits of another script": ("search?shelf=%D9%A1&q=a", {}, 422, "INVALID_INPUT"),
    "two values for one": ("search?shelf=1&q=a&q=b", {}, 422, "INVALID_INPUT"),
    "an unknown input": ("search?shelf=1&q=a&page=2", {}, 422, "INVALID_INPUT"),
    "a query that is not UTF-8": ("search?shelf=1&q=%FF", {}, 422, "INVALID_INPUT"),
    "too many fields": ("search?" + "&".join(f"a{n}=1" for n in range(1001)), {}, 422, "INVALID_INPUT"),
    "a path that leaves its segment": ("delete_review?review_id=..", {"method": "DELETE"}, 422, "INVALID_INPUT"),
    "not JSON": ("review", {"content": b"{", "headers": {"content-type": "application/json"}}, 400, "NOT_JSON"),
    "a list": ("review", {"json": [1]}, 422, "INVALID_INPUT"),
    "the same twice": ("review?title=a", {"json": {"title": "b"}}, 422, "INVALID_INPUT"),
    "XML": ("review", {"content": b"<a/>", "headers": {"content-type": "text/xml"}}, 415, "UNSUPPORTED_MEDIA_TYPE"),
    "no media type": ("review", {"content": b"title=a"}, 415, "UNSUPPORTED_MEDIA_TYPE"),
    "a form without a boundary": (
        "review",
        {"content": b"--x--", "headers": {"content-type": "multipart/form-data"}},
        415,
        "UNSUPPORTED_MEDIA_TYPE",
    ),
    "a form that breaks off": (
        "review",
        {"content": b'--x\r\nContent-Disposition: form-data; name="title"\r\n\r\nEm'},
        422,
        "INVALID_INPUT",
    ),
    "a part without a name": ("review", {"content": b"--x\r\n\r\nEmma\r\n--x--"}, 422, "INVALID_INPUT"),
    "a part with a long head": (
        "review",
        {"content": b"--x\r\n" + b"a" * 9000 + b"\r\n\r\n\r\n--x--"},
        422,
        "INVALID_INPUT",
    ),
    "a part without an end of its head": ("review", {"content": b"--x\r\nEmma\r\n--x--"}, 422, "INVALID_INPUT"),
    "a part that is not UTF-8": (
        "review",
        {"content": b'--x\r\nContent-Disposition: form-data; name="title"\r\n\r\n\xff\r\n--x--'},
        422,
        "INVALID_INPUT",
    ),
    "a file for a text": ("review", {"files": {"title": ("a.bin", b"\xff")}}, 422, "INVALID_INPUT"),
    "a coded body": (
        "review",
        {"content": b"x", "headers": {"content-type": "application/json", "content-encoding": "gzip"}},
        415,
        "UNSUPPORTED_MEDIA_TYPE",
    ),
    "a body too large": ("review", {"data": {"title": "x" * 1_100_000}}, 413, "BODY_TOO_LARGE"),
    "an unknown action": ("serch", {}, 404, "UNKNOWN_ACTION"),
    "another method": ("search?shelf=1&q=a", {"method": "POST"}, 405, "METHOD_NOT_ALLOWED"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_a_call_is_refused_in_words(shop, what):
    path, sent, status, code = BAD[what]
    has_body = not {"content", "json", "data", "files"}.isdisjoint(sent)
    if "content" in sent and "headers" not in sent and what != "no media type":
        sent = {**sent, "headers": {"content-type": "multipart/form-data; boundary=x"}}
    answer = shop.request(sent.get("method", "POST" if has_body else "GET"), f"{AT}/{path}", **_rest(sent))
    assert answer.headers["content-type"] == "application/problem+json"
    assert told(answer) == (status, code)


def _rest(sent: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sent.items() if name != "method"}


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


def test_another_method_is_told_the_right_one(shop):
    assert shop.post(f"{AT}/search").headers["allow"] == "GET, HEAD, OPTIONS"
    assert shop.get(f"{AT}/review").headers["allow"] == "POST, OPTIONS"


def test_an_unknown_action_is_told_the_nearest(shop):
    assert "Did you mean search?" in shop.get(f"{AT}/serch").json()["detail"]


def test_of_many_similar_actions_three_are_named(open_client):
    site = make_shop()
    for number in range(1, 6):
        site.agent(f"search_{number}", description="Search.")(lambda: None)
    detail = publish(site, open_client).get(f"{AT}/search_").json()["detail"]
    assert detail.partition("Did you mean ")[2].count("search_") == 3


# --- Gates, by header and as members ---


def test_key_confirmation_and_receipts_are_members_beside_the_inputs(shop):
    given = {"title": "Emma", "lines": {}}
    assert told(shop.post(f"{AT}/order", json=given))[0] == 428
    receipts = [shop.post(f"{AT}/look").headers["awp-receipt"]]
    asked = shop.post(f"{AT}/order", json={**given, "receipts": receipts}).json()
    assert asked["code"] == "CONFIRMATION_REQUIRED"
    members = {"receipts": receipts, "confirmation": asked["confirmation"]["token"], "order_key": "k-1"}
    first, again = (shop.post(f"{AT}/order", json={**given, **members}) for _ in range(2))
    assert (first.json(), first.headers.get("idempotent-replayed")) == (["Emma", {}, 1], None)
    assert (again.json(), again.headers["idempotent-replayed"]) == (["Emma", {}, 1], "true")
    by_form = {"title": "Emma", "lines": "{}", "receipts": receipts[0], "order_key": "k-1"}
    assert shop.post(f"{AT}/order", data=by_form).headers["idempotent-replayed"] == "true"
    by_header = {"awp-receipt": receipts[0], "idempotency-key": "k-1"}
    assert shop.post(f"{AT}/order", json=given, headers=by_header).headers["idempotent-replayed"] == "true"


def test_a_key_of_the_wrong_kind_is_refused(shop):
    assert told(shop.post(f"{AT}/order", json={"title": "a", "lines": {}, "order_key": 7})) == (400, "INVALID_ENVELOPE")


def test_who_calls_and_how_often_is_asked_as_at_other_doors(shop):
    assert told(shop.post(f"{AT}/mine")) == (401, "AUTHENTICATION_REQUIRED")
    assert [shop.post(f"{AT}/mine", headers=ANN).status_code for _ in range(3)] == [200, 200, 429]


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


FOREIGN = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}


def test_a_form_of_another_sites_page_calls_nothing_with_what_a_browser_adds_by_itself(shop):
    for name in (
        "cookie: session=1",
        *(f"authorization: {one} YTpi" for one in ("Basic", "digest", "Negotiate", "NTLM")),
    ):
        credentials = dict([name.split(": ")])
        answer = shop.post(f"{AT}/review", data={"title": "Emma"}, headers=FOREIGN | credentials)
        assert told(answer) == (403, "CROSS_SITE_COOKIES"), name


# --- Answers ---


def test_an_answer_that_is_not_json_is_given_as_it_is(shop):
    picture = shop.get(f"{AT}/picture")
    assert (picture.headers["content-type"], picture.content) == ("image/png", b"\x89PNG\xff")
    page = shop.get(f"{AT}/picture?as_page=true")
    assert (page.headers["content-type"], page.text) == ("text/html; charset=utf-8", "<p>é</p>")


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


@pytest.mark.parametrize("as_page", [False, True])
def test_an_answer_that_is_not_json_is_replayed_as_it_was(shop, as_page):
    headers = {"idempotency-key": "k-1"}
    first, again = (shop.get(f"{AT}/picture?as_page={as_page}", headers=headers) for _ in range(2))
    assert again.headers["idempotent-replayed"] == "true"
    assert (again.headers["content-type"], again.content) == (first.headers["content-type"], first.content)


def test_head_is_answered_as_get_without_the_body(shop):
    got, asked = shop.get(f"{AT}/search?shelf=1&q=a"), shop.head(f"{AT}/search?shelf=1&q=a")
    assert (asked.status_code, asked.content) == (200, b"")
    assert asked.headers["content-length"] == got.headers["content-length"]


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


def test_pages_of_listed_origins_may_call(open_client):
    site = make_shop(allow_origins=["https://app.example"])

    @site.agent("look")
    async def look() -> str:
        """Look."""
        return "books"

    client = open_client(AgentPublisher(Starlette(), site=site))
    asked = client.options(f"{AT}/look", headers={"origin": "https://app.example"})
    assert (asked.status_code, asked.headers["allow"]) == (204, "POST, OPTIONS")
    assert asked.headers["access-control-allow-origin"] == "https://app.example"
    answer = client.post(f"{AT}/look", headers={"origin": "https://app.example"})
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert "AWP-Receipt" in answer.headers["access-control-expose-headers"]


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
