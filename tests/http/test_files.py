"""Files go in and come out with their names and media types, at every door, by hand and with `AgentClient`."""

import base64
from typing import Annotated

import pytest
from a2a.types.a2a_pb2 import Part
from fastapi import FastAPI, File, Request, Response, UploadFile

from awp_publish import AgentPublisher
from awp_publish.client import AgentClient
from tests.doors.adapters import DOORS
from tests.guarded import KEYS, make_shop
from tests.installed import installed
from tests.plugins.a2a.a2a_client import SPOKEN, open_caller, output, problem

PNG = b"\x89PNG\r\n\x1a\n\x00\xff"


@pytest.fixture
def app():
    site, app = make_shop(plugins=installed("mcp", "a2a", "awp"), secret_keys=KEYS), FastAPI()

    @app.post("/cover")
    @site.action("add_cover")
    async def add_cover(cover: Annotated[UploadFile, File()], more: list[UploadFile] | None = None) -> list[list[str]]:
        """Add a cover."""
        files = [cover, *(more or [])]
        return [[file.filename or "", file.content_type or "", (await file.read()).hex()] for file in files]

    @app.get("/cover", response_class=Response)
    @site.action("show_cover")
    async def show_cover() -> Response:
        """Show a cover."""
        named = {"content-disposition": 'attachment; filename="cover 1.png"'}
        return Response(PNG, media_type="image/png", headers=named)

    raw = {"content": {"image/*": {"schema": {"type": "string", "format": "binary"}}}, "required": True}

    @app.put("/cover", openapi_extra={"requestBody": raw})
    @site.action("replace_cover", confirm=False, guard_routes=True, rate_limit="100/minute")
    async def replace_cover(request: Request) -> list[str]:
        """Replace a cover."""
        return [request.headers["content-type"], (await request.body()).hex()]

    app.add_middleware(AgentPublisher, site=site)
    return app


FILE = {"filename": "dir/cover.dat", "content_type": "image/png; q=1", "content": base64.b64encode(b"a").decode()}


@pytest.mark.parametrize("door", DOORS)
def test_a_file_in_json_has_its_name_and_its_media_type(open_client, app, door):
    caller = DOORS[door](open_client(app))
    answer = caller.call("add_cover", {"cover": FILE, "more": [FILE, base64.b64encode(PNG).decode()]})
    named = ["cover.dat", "image/png; q=1", b"a".hex()]
    assert answer.output == [named, named, ["more.png", "image/png", PNG.hex()]]
    wrong = caller.call("add_cover", {"cover": {**FILE, "content_type": "image/png\r\nx: y"}})
    assert wrong.code == "INVALID_INPUT"


@pytest.mark.needs("plain")
def test_the_address_that_documents_give_reads_a_file_as_they_say_base64(open_client, app):
    client = open_client(app)
    listed = {
        "/.well-known/ai-actions.json": lambda action: {
            parameter["name"]: parameter for parameter in action["parameters"]
        },
        "/agent.json": lambda action: action["inputs"],
    }
    for path, inputs_of in listed.items():
        action = next(action for action in client.get(path).json()["actions"] if action["id"] == "add_cover")
        assert inputs_of(action)["cover"]["x-encoding"] == "base64"
        assert inputs_of(action)["more"]["x-items"]["x-encoding"] == "base64"
        answer = client.request(action["method"], action["endpoint"], json={"cover": base64.b64encode(PNG).decode()})
        assert answer.json() == [["cover.png", "image/png", PNG.hex()]]


def test_a_file_of_a_form_has_its_name_and_its_media_type_at_the_plain_door(open_client, app):
    files = [("cover", ("a b.dat", b"a", "text/x-own")), ("more", ("ä.csv", PNG, "text/csv")), ("more", ("", b""))]
    answer = open_client(app).post("/agents/actions/add_cover", files=files[:2])
    assert answer.json() == [["a b.dat", "text/x-own", b"a".hex()], ["ä.csv", "text/csv", PNG.hex()]]
    answer = open_client(app).post("/agents/actions/add_cover", files=[files[0], files[2]])
    assert answer.json() == [["a b.dat", "text/x-own", b"a".hex()]]


@pytest.mark.parametrize("door", DOORS)
def test_the_client_takes_and_gives_bytes(app, door):
    with AgentClient(app, door=door) as client:
        sent = client.call("add_cover", cover=("a.csv", b"a"), more=[("b.dat", b"b", "text/x-own"), PNG])
        assert sent == [
            ["a.csv", "text/csv", "61"],
            ["b.dat", "text/x-own", "62"],
            ["more.png", "image/png", PNG.hex()],
        ]
        assert client.call("replace_cover", body=PNG) == ["image/png", PNG.hex()]
        answer = client.send("show_cover")
        assert (answer.output, answer.media_type) == (PNG, "image/png")
        assert answer.filename == "cover 1.png"


@pytest.mark.needs("guarded_routes")
def test_a_body_of_bytes_is_read_at_its_guarded_route(open_client, app):
    answer = open_client(app).put("/cover", content=PNG, headers={"content-type": "image/png"})
    assert answer.json() == ["image/png", PNG.hex()]


@pytest.mark.needs("a2a")
async def test_file_parts_of_a2a_keep_their_names_and_media_types(app):
    parts = [
        Part(raw=b"a", filename="cover.dat", media_type="image/png"),
        Part(raw=PNG, media_type="image/png"),
        Part(raw=b"c", filename="c.csv"),
    ]
    for spoken in SPOKEN:
        async with open_caller(app, spoken) as caller:
            task = await caller.call("add_cover", files=parts)
            assert output(task) == [
                ["cover.dat", "image/png", "61"],
                ["more.png", "image/png", PNG.hex()],
                ["c.csv", "text/csv", "63"],
            ], spoken
            assert all(not part.raw for message in task.history for part in message.parts)


@pytest.mark.needs("a2a")
async def test_a_file_part_for_which_there_is_no_input_is_refused(app):
    async with open_caller(app) as caller:
        task = await caller.call("show_cover", files=[Part(raw=b"a", filename="a.png")])
    assert problem(task)["code"] == "INVALID_INPUT"
    assert 'no input for the file "a.png"' in problem(task)["detail"]


@pytest.mark.parametrize("door", DOORS)
def test_a_limit_in_bytes_holds_for_the_file_and_not_for_its_base64(open_client, door):
    site, app = make_shop(plugins=installed("mcp", "a2a", "awp"), secret_keys=KEYS), FastAPI()

    @app.post("/icon")
    @site.action("add_icon")
    async def add_icon(icon: Annotated[bytes, File(min_length=2, max_length=3)]) -> int:
        """Add an icon."""
        return len(icon)

    app.add_middleware(AgentPublisher, site=site)
    caller = DOORS[door](open_client(app))
    for content, code in ((b"", "INVALID_INPUT"), (b"ab", None), (b"abc", None), (b"abcd", "INVALID_INPUT")):
        text = base64.b64encode(content).decode()
        for icon in (text, {"filename": "a.ico", "content": text}):
            assert caller.call("add_icon", {"icon": icon}).code == code
