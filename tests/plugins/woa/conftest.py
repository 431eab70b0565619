"""The draft's text, which lives beside the checkout where it is at hand."""

import pytest

from tests.documents.conftest import shared_file


@pytest.fixture(scope="session")
def woa_draft() -> str:
    return shared_file("specs/woa-draft-00.txt").read_text("utf-8")
