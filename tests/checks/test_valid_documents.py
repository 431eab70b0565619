"""Documents that are right get no findings."""

import json

import pytest

from awp_publish.checks import check_document, check_documents

from .documents import KINDS, PATHS


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_is_told_from_the_members(kind: str) -> None:
    assert check_document(json.dumps(KINDS[kind])) == []
    assert check_document(json.dumps(KINDS[kind]).encode()) == []


def test_the_documents_of_one_site_agree() -> None:
    site = {PATHS[kind]: json.dumps(document).encode() for kind, document in KINDS.items()}
    site["/.well-known/awas.json"] = site["/.well-known/ai-actions.json"]
    site["/schema/awas-schema.json"] = b'{"$schema": "https://json-schema.org/draft/2020-12/schema"}'
    site["/llms.txt"] = b"# Bookshop"
    assert check_documents(site) == []
