"""allauth's sign-in, whose forms make their fields in `__init__` and are chosen by the view."""

import json
from typing import Any

import pytest

from tests.django.servers import ROOT, environment
from tests.processes import run

pytest.importorskip("allauth", reason="allauth is not installed")


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    done = run("tests.django.allauth_shop", cwd=ROOT, env=environment())
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_the_form_is_read_from_an_instance(told):
    members = told["inputs"]["properties"]
    assert set(members) == {"login", "password", "remember"}
    assert members["password"]["format"] == "password"
    assert "enum" not in json.dumps(members)
    assert "<" not in json.dumps(members)


def test_people_sign_in_and_mistakes_are_refusals(told):
    assert told["stranger"][0] == 401
    assert told["wrong"][0] == 422
    assert told["wrong"][1]["code"] == "INVALID_INPUT"
    assert "/email" in {error["pointer"] for error in told["taken"][1]["errors"]}
    assert told["in"][0] == 200
    assert told["in"][1]["location"] == "/mine/"
    assert told["known"] == [200, {"name": "ann"}]


def test_nothing_of_it_is_published_by_the_way(told):
    assert told["actions"] == ["mine", "sign_in", "sign_up"]
    assert told["pages"] == []
