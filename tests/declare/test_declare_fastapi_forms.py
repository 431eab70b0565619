"""FastAPI handlers: forms and files."""

import base64
from typing import Annotated

import pytest
from fastapi import File, Form, UploadFile
from pydantic import BaseModel, ConfigDict

from tests.declare.handlers import taking


class Contact(BaseModel):
    name: str
    tags: list[str] = []
    agree: bool = False


class ClosedContact(Contact):
    model_config = ConfigDict(extra="forbid")


async def form_fields(
    name: Annotated[str, Form()],
    n: Annotated[int | None, Form()] = None,
    tags: Annotated[list[str], Form()] = [],  # noqa: B006
):
    return [name, n, tags]


async def form_model(contact: Annotated[Contact, Form()]):
    return contact


async def closed_form_model(contact: Annotated[ClosedContact, Form()]):
    return contact


async def form_model_and_field(contact: Annotated[Contact, Form()], note: Annotated[str, Form()]):
    return [contact, note]


async def a_file(file: UploadFile, note: Annotated[str, Form()] = "n"):
    return [(await file.read()).decode(), note]


async def files(files: list[UploadFile]):
    return [(await file.read()).decode() for file in files]


async def optional_files(files: Annotated[list[bytes] | None, File()] = None):
    return files and [file.decode() for file in files]


async def bytes_of_a_file(file: Annotated[bytes, File()]):
    return file.decode()


async def an_optional_file(file: Annotated[bytes | None, File()] = None):
    return file and file.decode()


class Upload(BaseModel):
    note: str
    file: UploadFile


async def form_model_with_a_file(upload: Annotated[Upload, Form()]):
    return [upload.note, (await upload.file.read()).decode()]


HELLO = base64.b64encode(b"hello").decode()
ADA = {"name": "Ada", "tags": ["x", "y"], "agree": True}


@pytest.mark.parametrize(
    ("handler", "given", "arrives"),
    [
        (form_fields, {"name": "Ada", "n": 2, "tags": ["x", "y"]}, ["Ada", 2, ["x", "y"]]),
        (form_fields, {"name": "Ada & Eve=ü"}, ["Ada & Eve=ü", None, []]),
        (form_model, ADA, ADA),
        (closed_form_model, ADA, ADA),
        (form_model_and_field, {**ADA, "note": "n"}, [ADA, "n"]),
        (a_file, {"file": HELLO, "note": "m"}, ["hello", "m"]),
        (files, {"files": [HELLO, HELLO]}, ["hello", "hello"]),
        (optional_files, {"files": [HELLO]}, ["hello"]),
        (optional_files, {}, None),
        (bytes_of_a_file, {"file": HELLO}, "hello"),
        (an_optional_file, {"file": HELLO}, "hello"),
        (an_optional_file, {"file": None}, None),
        (form_model_with_a_file, {"note": "n", "file": HELLO}, ["n", "hello"]),
    ],
)
def test_forms_and_files_arrive(site, start, handler, given, arrives):
    front = start(taking(site, handler))
    assert front.call("take", given) == arrives
    assert front.address("take") == "/agents/actions/take"  # which takes JSON, too


def test_a_file_is_base64_in_the_published_schema_and_in_the_input(site, start):
    front = start(taking(site, a_file))
    schema = front.inputs("take")["properties"]["file"]
    assert {name: schema[name] for name in ("contentMediaType", "contentEncoding")} == {
        "contentMediaType": "application/octet-stream",
        "contentEncoding": "base64",
    }
    plain, named = schema["anyOf"]
    assert plain == {"type": "string"}
    assert list(named["properties"]) == ["filename", "content_type", "content"]
    assert front.ask("take", {"file": "?!"}).json()["errors"] == [{"pointer": "/file", "detail": "must be base64"}]


def test_bytes_in_a_json_body_are_text_and_no_file(site, start):
    class Secret(BaseModel):
        key: bytes

    async def take(secret: Secret) -> str:
        return secret.key.decode()

    front = start(taking(site, take))
    assert front.call("take", {"key": "as it is"}) == "as it is"
    assert "contentEncoding" not in front.inputs("take")["properties"]["key"]


def test_a_closed_form_refuses_other_fields(site, start):
    answer = start(taking(site, closed_form_model)).ask("take", {"name": "Ada", "more": 1})
    assert answer.json()["errors"][0]["pointer"] == "/more"
