"""Every code that a runtime answers stands in a table, and every table is of codes that there are."""

import re
from pathlib import Path
from typing import get_args

from awp_publish.maps import failure_classes, failures, live_page, projections, runtime

PACKAGE = Path(runtime.__file__).parent
SOURCES = {path.name: path.read_text() for path in PACKAGE.glob("*.py")}
EXPRESSIONS = SOURCES["expressions.py"] + SOURCES["engine.py"]
OF_THE_SITE = {"ambiguous_runtime", "runtime_not_found", "transport_failed"}


def raised(name: str) -> set[str]:
    return {code for text in SOURCES.values() for code in re.findall(rf'{name}\(\s*"(\w+)"', text)}


def test_the_codes_of_the_bridge_are_all_told():
    assert set(failures.CODES) == set(get_args(failures.Code))
    assert raised("RuntimeFailure") <= set(failures.CODES) - OF_THE_SITE | {"transport_failed"}


def test_the_codes_of_primitives_are_all_told():
    mapped = set(re.findall(r'"[A-Z_]+": "(\w+)",', SOURCES["site_page.py"])) | {"form_invalid", "insert_failed"}
    assert raised("PrimitiveError") | mapped == set(live_page.CODES)


def test_the_codes_of_workflows_and_projections_are_all_told():
    of_expressions = set(re.findall(r'ExpressionError\(\s*"(\w+)"', EXPRESSIONS))
    for codes in (failure_classes.WORKFLOW_CODES, projections.PROJECTION_CODES):
        text = "".join(SOURCES.values())
        for code in codes:
            assert code in of_expressions or text.count(f'"{code}"') > 1, code
    assert raised("ProjectionError") <= set(projections.PROJECTION_CODES)
    assert raised("WorkflowFailure") | of_expressions <= set(failure_classes.WORKFLOW_CODES)
