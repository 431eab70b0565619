"""Any change to a page's map is refused with page and pointer, or is published without a mistake."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings, strategies as st

from awp_publish import DeclarationError
from awp_publish.checks import check_document
from awp_publish.plugins.actions_json.document import render
from tests.examples import examples
from tests.plugins.actions_json.test_actions_json import WHOLE, Chosen, bookshop

MAP = {**WHOLE, "transitions": WHOLE["transitions"][:1]}
VALUES: list[Any] = [
    None,
    True,
    -1,
    1.5,
    "",
    "form",
    "a b",
    "search.ready",
    "{% 1 %}",
    "%}",
    [],
    {},
    ["a"],
    [1],
    {"a": 1},
]
VALUES += [[[]], {"selector": "a"}, [{"name": "a"}], float("nan"), object(), int, Chosen, ("a",), b"x", {1: 2}]


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield (*path, name)
        yield from places(inner, (*path, name))


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(list(places(MAP))), st.sampled_from(VALUES), st.booleans())
def test_a_changed_map_is_refused_with_a_pointer_or_published_without_a_mistake(
    path: tuple[Any, ...], value: Any, is_left_out: bool
) -> None:
    changed: Any = copy.deepcopy(MAP)
    owner = changed
    for name in path[:-1]:
        owner = owner[name]
    if is_left_out:
        del owner[path[-1]]
    else:
        owner[path[-1]] = value
    message, document = "map: /", {}
    try:
        app, site = bookshop(map=changed)
        document = render(site.freeze(app))
    except DeclarationError as refused:
        message = str(refused)
    assert "map: /" in message
    if document:
        errors = [item for item in check_document(json.dumps(document).encode()) if item.level == "error"]
        assert errors == []
