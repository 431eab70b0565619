"""The published conformance suite of SOM, by the rules of its README. What it expects wrongly is listed."""

from typing import Any

import pytest

from awp_publish.pages import compile_som
from tests.pages.conftest import FIXTURES, NEEDS_FIXTURES, read_json, read_page

pytestmark = NEEDS_FIXTURES

CASES = sorted(path.name.removesuffix(".expected.json") for path in (FIXTURES / "conformance").glob("*.expected.json"))

WRONG: dict[str, set[str]] = {
    # A `<label for>` comes before the placeholder (4.5, label resolution): the label is "Email", then "Password".
    "003-login-form": {"r_form: no text_input you@example.com", "r_form: no text_input Enter password"},
    # What is in `<main>` is in the main region (3.3, rule 2); `r_content` is for what is in none (rule 7).
    "008-search-form": {"no region r_content"},
    # The page has eight: a link with a role, three links of the breadcrumb, a button, a checkbox, two links.
    "009-aria-roles": {"interactive_count 8"},
    # The page has three buttons and nothing else to operate.
    "010-dialog": {"interactive_count 3"},
    # The page has three radio buttons, three checkboxes, a text area and a button.
    "011-radio-checkbox": {"interactive_count 8"},
    # A region without elements is left out (3.1): all that `<main>` holds is a form, which is a region of its own.
    "014-fieldset-groups": {"no region r_main"},
    # The same; and six controls are listed where five are counted.
    "015-action-state": {"no region r_main", "interactive_count 6"},
}


@pytest.mark.parametrize("case", CASES)
def test_a_case_of_the_suite(case, som_schema):
    expected = read_json(f"conformance/{case}.expected.json")
    document = compile_som(read_page(f"conformance/{case}.html"), expected["url"]).document
    som_schema.validate(document)
    assert {name: document[name] for name in ("som_version", "url", "title", "lang")} == {
        name: expected[name] for name in ("som_version", "url", "title", "lang")
    }
    assert set(missing_from(document, expected)) == WRONG.get(case, set())


def test_every_wrong_case_is_one_of_the_suite():
    assert set(WRONG) < set(CASES)
    assert len(CASES) == 16


def missing_from(document: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    found = []
    for wanted in expected["regions"]:
        name = wanted.get("id", wanted["role"])
        region = next((region for region in document["regions"] if name in (region["id"], region["role"])), None)
        if region is None:
            found.append(f"no region {name}")
            continue
        members = {key: value for key, value in wanted.items() if key != "elements"}
        if not holds(members, region):
            found.append(f"{name}: another region")
        for element in wanted["elements"]:
            if not any(holds(element, one) for one in region["elements"]):
                found.append(f"{name}: no {element['role']} {element.get('text') or element.get('label', '')}")
    count = document["meta"]["interactive_count"]
    return found if count == expected["meta"]["interactive_count"] else [*found, f"interactive_count {count}"]


def holds(wanted: object, found: object) -> bool:
    """Whether what is wanted is in what was found, which may say more."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(name in found and holds(wanted[name], found[name]) for name in wanted)
    return wanted == found
