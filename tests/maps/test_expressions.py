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

MAPS = Path(__file__).parents[2] / ".." / "shared" / "fixtures" / "actions-json"
DOCUMENT = {"input": {"q": "Emma", "none": None, "copies": 2}, "steps": {"find": {"output": {"x": 5}}}}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("input.q", "Emma"),
        ("input.none", None),
        ("input.lost", UNDEFINED),
        ("steps.find.output.x + input.copies", 7),
        ("{'a': input.lost, 'b': 20.0}", {"b": 20}),
        ("$append([], input.q)", ["Emma"]),
        ("$exists(input.lost)", False),
        ("input.lost = null", False),
        ("'$now() is a text'", "$now() is a text"),
        ("input.q /* $now() */", "Emma"),
        ("10/2/5", 1),
        ("$pad('7', -3, '0')", "007"),
        ("$pad('ab', 5, 'xy')", "abxyx"),
    ],
)
def test_an_expression_has_its_value(expression: str, value: object) -> None:
    assert evaluate(expression, DOCUMENT, 16_000) == value


@pytest.mark.parametrize(
    ("expression", "cause"),
    [
        ("$error('no')", "no"),
        ("$number('x')", "Cannot convert 'x' to number"),
        ("$pad('a')", "$pad takes a text and a width"),
        ("$map([1], function($i){$pad('a', 1e9)})", "$pad is limited to 10000 characters"),
        ("($e := $lookup({'f': $millis}, 'f'))", "$millis is not allowed in the expressions of an actions.json"),
        ("$absent(1)", "Attempted to invoke a non-function: $absent"),
    ],
)
def test_an_expression_that_fails_names_its_cause(expression: str, cause: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        evaluate(expression, DOCUMENT, 16_000)
    assert refused.value.message.endswith(f"{cause}.")
    assert "host function" not in refused.value.message


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("$eval('1')", "disallowed_expression_function"),
        ("($e := $eval; $e('1'))", "disallowed_expression_function"),
        ("$map(['1'], $eval)", "disallowed_expression_function"),
        ("$random()", "disallowed_expression_function"),
        ("$now/* */()", "disallowed_expression_function"),
        ("$millis ()", "disallowed_expression_function"),
        ("{'a': ", "invalid_expression"),
        (f"'{'x' * 4000}'", "invalid_expression"),
        ("$pad('x', 100000000)", "expression_evaluation_failed"),
        ("($f := function($n) {$f($n + 1)}; $f(0))", "expression_evaluation_failed"),
        ("1 + 'a'", "expression_evaluation_failed"),
        ("$pad('', 9000) & $pad('', 9000)", "expression_output_too_large"),
    ],
)
def test_an_expression_that_may_not_be_or_fails_says_so_by_a_code(expression: str, code: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        evaluate(expression, DOCUMENT, 16_000)
    assert refused.value.code == code


def test_a_text_that_grows_without_end_is_stopped() -> None:
    doubling = ";".join(f"$a{step} := $a{step - 1} & $a{step - 1}" for step in range(1, 60))
    with pytest.raises(ExpressionError):
        evaluate(f"($a0 := 'x';{doubling};$length($a59))", {}, 16_000)


def test_sequences_and_regular_expressions_are_bounded_or_refused() -> None:
    for expression in ("$count([1..10000000])", "$match('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!', /(a+)+$/).match = 'a'"):
        with suppress(ExpressionError):
            assert evaluate(expression, {}, 16_000) in (False, UNDEFINED)


def test_whole_numbers_that_an_engine_would_change_are_refused() -> None:
    with pytest.raises(ExpressionError) as refused:
        evaluate("input.n", {"input": {"n": 2**53}}, 16_000)
    assert refused.value.code == "expression_evaluation_failed"
    assert evaluate("input.n", {"input": {"n": 2**53 - 1}}, 16_000) == 2**53 - 1


@pytest.mark.parametrize(
    "text", ["for {% input.q %}", "{% a %} {% b %}", "{% input.q", "input.q %}", "{%}", "{% a {% b %}"]
)
def test_a_slot_fills_its_text(text: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        expression_of(text)
    assert refused.value.code == "partial_expression_unsupported"


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
