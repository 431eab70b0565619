"""Every broken document gets the finding it deserves, at its place, and no other."""

import pytest

from awp_publish.checks import check_document
from awp_publish.checks.places import exists

from .cases import CASES, Case
from .documents import edited


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_broken_document_gets_exactly_its_finding_once_with_what_to_do_and_where_it_is_written(case: Case) -> None:
    document = edited(case.base, case.edits)
    findings = check_document(document, case.kind, "/some/where.json")
    places = [(finding.check, finding.pointer) for finding in findings]
    assert (case.check, case.pointer) in places
    others = {finding.check for finding in findings} - {case.check}
    assert others <= case.also, [str(finding) for finding in findings]
    assert len(places) == len(set(places))
    for finding in findings:
        assert finding.message.endswith(".")
        assert finding.hint.endswith((".", "?"))
        assert finding.source
        assert str(finding).startswith(f"{finding.level}: /some/where.json#{finding.pointer}: ")
        assert exists(document, finding.pointer) or exists(document, finding.pointer.rpartition("/")[0])
