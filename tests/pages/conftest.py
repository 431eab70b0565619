"""What tests of pages ask for: Chromium, and the published SOM files, which are not a part of this project."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from awp_publish.maps.chromium import find_chromium

FIXTURES = Path(__file__).resolve().parents[2].parent / "shared" / "fixtures" / "som"
NEEDS_FIXTURES = pytest.mark.skipif(not FIXTURES.is_dir(), reason="the published SOM files are not here")

CHROMIUM = find_chromium()


def read_json(name: str) -> Any:
    return orjson.loads((FIXTURES / name).read_bytes())


def read_page(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


@pytest.fixture(scope="session")
def som_schema() -> Draft202012Validator:
    if not FIXTURES.is_dir():
        pytest.skip("the published SOM files are not here")
    return Draft202012Validator(read_json("spec/som-schema.json"))


@pytest.fixture(scope="module")
def tab() -> Iterator[Any]:
    """A page of Chromium."""
    sync_api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium here")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()
