"""Rules of actions.json that validators and runtimes share."""

import pytest

from awp_publish.maps.primitives import PORTABLE, PRIMITIVES, arguments_of
from awp_publish.maps.rules import is_identifier, is_step_id, path_fault, url_fits

URL = "https://books.example/search?q=Emma"


@pytest.mark.parametrize("name", ["a", "search.submit", "a-b_c.D9"])
def test_a_safe_identifier_is_dotted_ascii(name: str) -> None:
    assert is_identifier(name)


@pytest.mark.parametrize("name", ["", "1a", "a.", ".a", "a..b", "a b", "a\n", "b\u00fcch", None, 5])
def test_what_is_no_safe_identifier_is_told(name: object) -> None:
    assert not is_identifier(name)


def test_the_id_of_a_step_has_no_dots() -> None:
    assert is_step_id("find_it")
    assert not is_step_id("find.it")


@pytest.mark.parametrize(
    ("target", "fits"),
    [
        ({}, True),
        ({"url_contains": "/search"}, True),
        ({"url_contains": "/SEARCH"}, False),
        ({"url_contains": ["/cart", "/search"]}, True),
        ({"url_matches": "https://books.example/*"}, True),
        ({"url_matches": "HTTPS://BOOKS.EXAMPLE/*emma"}, True),
        ({"url_matches": "*books*search*"}, True),
        ({"url_matches": "https://books.example/search"}, False),
        ({"url_matches": "*search*books*"}, False),
        ({"url_matches": URL}, True),
        ({"url_matches": "https://books.example/search?q=Emma*Emma"}, False),
        ({"url_contains": "/search", "url_matches": "*cart*"}, False),
        ({"url_matches": 5}, False),
    ],
)
def test_an_address_fits_what_a_target_asks_of_it(target: dict[str, object], fits: bool) -> None:
    assert url_fits(target, URL) is fits


def test_many_stars_take_no_longer_than_the_address() -> None:
    assert not url_fits({"url_matches": "a*" * 20_000 + "b"}, "a" * 30_000)


@pytest.mark.parametrize("path", ["pages/search.html", "./a/../b", "a/b/../../c", "a%20b", "..a/b"])
def test_a_path_inside_the_site_is_fine(path: str) -> None:
    assert path_fault(path) is None


@pytest.mark.parametrize(
    "path", ["/x", "\\x", "C:\\x", "//h/x", "~/x", "a/../../x", "%2e%2e/x", "a/%252e%252e/%2e%2e/x"]
)
def test_a_path_outside_the_site_is_told(path: str) -> None:
    assert path_fault(path) is not None


def test_every_primitive_has_a_closed_schema_of_its_arguments() -> None:
    assert len(PORTABLE) == 16
    for name in PRIMITIVES:
        assert arguments_of(name)["additionalProperties"] is False
    assert arguments_of("text.insert") == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "target": {"type": "object"},
            "mode": {"enum": ["append", "replace"]},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
