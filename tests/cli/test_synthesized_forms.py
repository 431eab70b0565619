"""What the markup of a form says of the action that it would be."""

from typing import Any

import pytest

from awp_publish.cli.console import Console
from awp_publish.cli.fetching import FetchedDocument, FetchRefused
from awp_publish.cli.sources import FileChange
from awp_publish.cli.synthesize.crawling import read_site
from awp_publish.cli.synthesize.documents import render_documents

URL = "https://shop.example/"


def form_of(form: str) -> Any:
    """Return the action of the one form of a page."""

    def get(address: str, accept: str) -> FetchedDocument:
        if address != URL:
            raise FetchRefused("There is nothing.")
        return FetchedDocument(f"<title>Shop</title>{form}".encode(), URL, "text/html", "utf-8")

    site = read_site(Console(as_json=True), get, URL, 5)
    documents = render_documents(site)
    for document in documents.values():
        assert not {"agent_status", "capabilities", "$schema"} & document.keys()
    assert not {"errors"} & documents["/.well-known/ai-actions.json"].keys()
    (seen,) = site.seen
    return seen.action


@pytest.mark.parametrize(
    ("control", "schema"),
    [
        ("<input name=a>", {"type": "string"}),
        ("<label>Words <input name=a></label>", {"type": "string", "description": "Words"}),
        ("<label><b><i>Words</i></b><span><input name=a></span></label>", {"type": "string", "description": "Words"}),
        ("<label for=x>Words</label><input name=a id=x>", {"type": "string", "description": "Words"}),
        ("<input name=a placeholder=Words>", {"type": "string", "description": "Words"}),
        ("<input name=a minlength=1 maxlength=20>", {"type": "string", "minLength": 1, "maxLength": 20}),
        ("<input name=a min=1 max=2>", {"type": "string"}),
        ("<input type=number name=a min=-1 max=2.5>", {"type": "number", "minimum": -1, "maximum": 2.5}),
        ("<input type=number name=a min=low>", {"type": "number"}),
        ("<input type=number name=a>", {"type": "number"}),
        ("<input type=hidden name=a value=x>", {"type": "string", "default": "x"}),
        ("<input type=checkbox name=a>", {"type": "string", "enum": ["on"]}),
        ("<input type=radio name=a value=1><input type=radio name=a value=2>", {"type": "string", "enum": ["1", "2"]}),
        ("<select name=a><option>1<option>2</select>", {"type": "string", "enum": ["1", "2"]}),
        (
            "<select name=a multiple><option value=1>One<option>2</select>",
            {"type": "array", "items": {"type": "string", "enum": ["1", "2"]}, "description": "1: One"},
        ),
    ],
)
def test_a_control_has_the_schema_that_its_markup_says(control, schema):
    inputs = form_of(f"<form action=/go><div>{control}</div></form>").inputs["properties"]
    assert inputs == {"a": schema}


@pytest.mark.parametrize(
    ("form", "kind", "method"),
    [
        ("<form role=search action=/go><input name=a></form>", "search", "GET"),
        ("<form action=/search/><input name=a></form>", "search", "GET"),
        ("<form action=/go><input name=q></form>", "search", "GET"),
        ("<form action=/go><input name=a></form>", "filter", "GET"),
        ("<form action=/go method=post><input name=a></form>", "form_submission", "POST"),
    ],
)
def test_the_kind_of_a_form_follows_from_what_it_says_of_itself(form, kind, method):
    action = form_of(form)
    assert (action.type, action.target.method) == (kind, method)


@pytest.mark.parametrize(
    ("before", "after", "diff"),
    [
        ("a\nb\n", "a\nc\n", "--- x.py\n+++ x.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
        (None, "a\n", "--- /dev/null\n+++ x.py\n@@ -0,0 +1 @@\n+a\n"),
        ("a", "a\n", "--- x.py\n+++ x.py\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
    ],
)
def test_a_change_is_shown_as_patch_reads_it(tmp_path, before, after, diff):
    assert FileChange(tmp_path.relative_to(tmp_path) / "x.py", before, after).diff() == diff
