"""Prompts: declared on the site, listed and written at the MCP door in both generations of the protocol."""

import asyncio
from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from mcp import MCPError
from pydantic import Field
from starlette.applications import Starlette

from awp_publish import AgentPublisher, DeclarationError, Limits, Refused
from tests.guarded import make_shop
from tests.plugins.mcp.mcp_messages import MODERN, MODES, VERSIONS, connect, message, post


class Tone(Enum):
    warm = "warm"
    dry = "dry"


@pytest.fixture
def site():
    site = make_shop(plugins=["mcp"])

    @site.prompt("recommend", title="Recommend a book")
    def recommend(genre: Annotated[str, Field(description="What kind of book.")], count: int = 3) -> str:
        """Ask for books of a kind."""
        return f"Recommend {count + 0} books: {genre}."

    @site.prompt("review", description="Review a book.")
    async def review(tone: Tone = Tone.warm, length: Literal["short", "long"] | None = None):
        return [("user", f"Be {tone.value}."), ("assistant", f"I will be {length}.")]

    @site.prompt("greet")
    def greet():
        return "Hello."

    return site


def publish(site):
    return AgentPublisher(Starlette(), site=site)


async def written(client, name, given=None) -> list[tuple[str, str]]:
    found = await client.get_prompt(name, given)
    return [(one.role, one.content.text) for one in found.messages]


@pytest.mark.parametrize("mode", MODES)
async def test_prompts_are_listed_as_they_are_declared(site, mode):
    async with connect(publish(site), "auto" if mode == MODERN else mode) as client:
        assert client.server_capabilities.prompts is not None
        listed = (await client.list_prompts()).prompts
    assert [(item.name, item.title, item.description) for item in listed] == [
        ("recommend", "Recommend a book", "Ask for books of a kind."),
        ("review", "Review", "Review a book."),
        ("greet", "Greet", None),
    ]
    rows = [(argument.name, argument.description, argument.required) for argument in listed[0].arguments]
    assert rows == [("genre", "What kind of book.", True), ("count", None, False)]
    assert not listed[2].arguments


@pytest.mark.parametrize("mode", MODES)
async def test_a_prompt_is_written_with_what_a_person_fills_in(site, mode):
    async with connect(publish(site), mode) as client:
        assert await written(client, "recommend", {"genre": "comedy", "count": "2"}) == [
            ("user", "Recommend 2 books: comedy.")
        ]
        assert await written(client, "review", {"tone": "dry", "length": "long"}) == [
            ("user", "Be dry."),
            ("assistant", "I will be long."),
        ]
        assert await written(client, "greet") == [("user", "Hello.")]
        assert (await client.get_prompt("review")).description == "Review a book."


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("unknown", {}, "no prompt"),
        ("recommend", {}, "needs genre"),
        ("recommend", {"genre": "comedy", "count": "many"}, "/count"),
        ("recommend", {"genre": "comedy", "more": "1"}, "/more"),
        ("review", {"tone": "loud"}, "/tone"),
    ],
)
async def test_a_prompt_that_cannot_be_written_is_an_error_of_the_protocol(site, mode, name, given, words):
    async with connect(publish(site), mode) as client:
        with pytest.raises(MCPError) as refused:
            await client.get_prompt(name, given)
    assert refused.value.error.code == -32602
    assert words in refused.value.error.message


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("failing", ["raise", "hang", "number", "role", "type"])
def test_a_prompt_that_fails_says_so_and_no_more(open_client, version, failing):
    site = make_shop(plugins=["mcp"], limits=Limits(timeout=0.2 if failing == "hang" else 30.0))

    @site.prompt("fail")
    async def fail() -> Any:
        if failing == "hang":
            await asyncio.sleep(30)
        if failing == "raise":
            raise RuntimeError("secret of the site")
        if failing == "type":
            return [("user", "aGk=", "a picture")]
        return 7 if failing == "number" else [("system", "Obey.")]

    answer = post(open_client(publish(site)), message("prompts/get", {"name": "fail"}, version=version), version)
    assert answer.json()["error"]["code"] == -32603
    assert "secret" not in answer.text


@pytest.mark.parametrize("mode", MODES)
async def test_a_prompt_may_show_pictures_sounds_and_files(site, mode):
    @site.prompt("look")
    def look() -> list[tuple[str, ...]]:
        """Look at all this."""
        kinds = ("image/png", "audio/wav", "application/pdf", "text/css")
        return [*(("user", "aGk=", kind) for kind in kinds), ("assistant", "I have.")]

    async with connect(publish(site), mode) as client:
        picture, sound, file, text, said = (await client.get_prompt("look")).messages
    assert (picture.content.type, picture.content.data, picture.content.mime_type) == ("image", "aGk=", "image/png")
    assert (sound.content.type, sound.content.mime_type) == ("audio", "audio/wav")
    assert (file.content.resource.blob, file.content.resource.mime_type) == ("aGk=", "application/pdf")
    assert (text.content.text, said.role, said.content.text) == ("aGk=", "assistant", "I have.")


def test_a_prompt_may_refuse_in_its_own_words(site, open_client):
    @site.prompt("closed")
    def closed() -> str:
        raise Refused("The shop is closed.", status=409)

    error = post(open_client(publish(site)), message("prompts/get", {"name": "closed"})).json()["error"]
    assert (error["code"], error["message"]) == (-32602, "The shop is closed.")
    assert error["data"]["status"] == 409


@pytest.mark.parametrize("version", VERSIONS)
def test_a_site_without_prompts_does_not_speak_of_them(open_client, version):
    client = open_client(publish(make_shop(plugins=["mcp"])))
    answer = post(client, message("prompts/list", version=version), version)
    assert answer.json()["error"]["code"] == -32601
    assert "prompts" not in client.get("/.well-known/mcp.json").json()["capabilities"]


def test_the_documents_tell_of_prompts_that_can_be_asked_for(site, open_client):
    client = open_client(publish(site))
    assert client.get("/.well-known/mcp.json").json()["capabilities"]["prompts"] == {}
    assert "prompts" in client.get("/.well-known/mcp-manifest.json").json()["capabilities"]


# --- Declaring ---


def declare(function: Any, names: list[Any], options: dict[str, Any]) -> None:
    site = make_shop()
    for name in names:
        site.prompt(name, **options)(function)
    site.freeze()


def unfillable(books: list[str]) -> str:
    return ""


def unannotated(books):
    return ""


def streaming() -> Iterable[str]:
    yield ""


def fine() -> str:
    return ""


@pytest.mark.parametrize(
    ("function", "names", "options", "words"),
    [
        (unfillable, ["ask"], {}, "parameter books cannot be entered"),
        (unannotated, ["ask"], {}, "parameter books has no annotation"),
        (streaming, ["ask"], {}, "generator"),
        (fine, ["ask", "ask"], {}, "declared twice"),
        (fine, ["Ask It"], {}, "id"),
        (fine, [fine], {}, 'write @site.prompt("its_id")'),
        (fine, ["ask"], {"title": ""}, "title: must be"),
        (fine, ["ask"], {"description": 7}, "description: must be"),
        (7, ["ask"], {}, "not a function"),
    ],
)
def test_mistakes_are_named_where_the_prompt_is_declared(function, names, options, words):
    with pytest.raises(DeclarationError) as refused:
        declare(function, names, options)
    assert words in str(refused.value)


def test_a_decorated_function_stays_what_it_is():
    site = make_shop()
    assert site.prompt("ask")(fine) is fine
    site.freeze()
    with pytest.raises(DeclarationError, match="after the site was published"):
        site.prompt("late")
