"""Expressions of actions.json: slots and what is refused."""

import json
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from awp_publish.maps import expressions
from awp_publish.maps.engine import ExpressionError
from awp_publish.maps.expressions import UNDEFINED, evaluate, expression_of, fill

DOCUMENT = {"input": {"q": "Emma", "none": None, "copies": 2}, "steps": {"find": {"output": {"x": 5}}}}
MAPS = Path(__file__).parents[2] / ".." / "shared" / "fixtures" / "actions-json"


def test_a_text_that_grows_without_end_is_stopped() -> None:
    doubling = ";".join(f"$a{step} := $a{step - 1} & $a{step - 1}" for step in range(1, 60))
    with pytest.raises(ExpressionError):
        evaluate(f"($a0 := 'x';{doubling};$length($a59))", {}, 16_000)


def test_sequences_and_regular_expressions_are_bounded_or_refused() -> None:
    for expression in ("$count([1..10000000])", "$match('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', /(a+)+$/).match = 'a'"):
        with suppress(ExpressionError):
            assert evaluate(expression, {}, 16_000) in (False, UNDEFINED)


def test_slots_are_filled_wherever_they_stand_and_undefined_members_are_left_out() -> None:
    given = {
        "a": " {% input.q %} ",
        "b": ["{% input.lost %}", "{% input.none %}", 3],
        "c": "{% input.lost %}",
        "d": "q",
    }
    assert fill(given, DOCUMENT, 16_000) == {"a": "Emma", "b": [None, 3], "d": "q"}
    assert given["a"] == " {% input.q %} "


def test_compiled_expressions_serve_every_thread() -> None:
    assert evaluate("input.q", DOCUMENT, 100) == "Emma"
    values: list[object] = []
    threads = [threading.Thread(target=lambda: values.append(evaluate("input.q", DOCUMENT, 100))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == ["Emma"] * 3


@pytest.mark.skipif(not MAPS.is_dir(), reason="the published maps are not beside the project")
def test_every_expression_of_the_published_maps_compiles() -> None:
    found = 0

    def visit(value: object) -> None:
        nonlocal found
        if isinstance(value, dict):
            for member in value.values():
                visit(member)
        elif isinstance(value, list):
            for member in value:
                visit(member)
        elif isinstance(value, str) and "{%" in value and (expression := expression_of(value)) is not None:
            found += 1
            expressions.check_expression(expression)

    for path in MAPS.glob("*.json"):
        visit(json.loads(path.read_bytes()))
    assert found


def test_the_thread_that_needs_the_engine_first_may_end():
    script = (
        "import threading\n"
        "from awp_publish.maps.expressions import evaluate\n"
        "for _ in range(5):\n"
        "    read = lambda: [evaluate('input.q', {'input': {'q': 1}}, 100) for _ in range(50)]\n"
        "    thread = threading.Thread(target=read)\n"
        "    thread.start()\n"
        "    thread.join()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_error_of_our_own_functions_names_its_cause_alone():
    with pytest.raises(ExpressionError) as failed:
        evaluate("$pad('x', 99999999)", {}, 1_000)
    assert failed.value.message == "The expression failed: $pad is limited to 10000 characters."
