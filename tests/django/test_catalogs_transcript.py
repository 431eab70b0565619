"""What is known of the views of Django projects: their catalogs in words, one in `transcripts` for each project.

A project is a module with a site and addresses, most of them of other tests. --golden writes the texts anew; read the
change.
"""

import re
from pathlib import Path

import django
import pytest
from awp_publish_django.publication import get_publication
from django.template import RequestContext, Template
from django.test import RequestFactory, override_settings

from tests.declare.facts import facts_of
from tests.django.sites import copy_of
from tests.function_transcripts import compare

PROJECTS = [
    *(
        "answers_with_pages",
        "bad_days",
        "callers",
        "class_views",
        "consent",
        "dead_actions",
        "descriptions",
    ),
    *("every_field", "files", "first_project", "forms", "forms_shown_again", "formsets", "frameworks"),
    *(
        "included",
        "left_out_fields",
        "model_queries",
        "own_route",
        "pages",
        "patterns",
        "plain",
        "redirects",
    ),
    *("rest_framework", "search", "small_things", "streamed_answers", "unprefixed_language", "urls_and_languages"),
]


@pytest.mark.skipif(django.VERSION < (5, 2), reason="older fields have other words")
@pytest.mark.parametrize("project", PROJECTS)
def test_views_of_django_are_described_as_in_the_transcript(project, request):
    module = copy_of(project)
    path = Path(__file__).parent / "transcripts" / f"{project}.txt"
    with override_settings(ROOT_URLCONF=module, AWP_PUBLISH={"SITE": f"{module}.site"}):
        text = "\n".join(facts_of(get_publication().site)).lstrip("\n") + "\n"
    text = re.sub(r"(?m)^left out: \w+ /admin/awp_publish_django/.*\n", "", text)  # other tests register these anew
    text = re.sub(r" at 0x[0-9a-f]+", "", text).replace(str(Path(__file__).parents[2]), "ROOT")
    if request.config.getoption("--golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_template_tags_render_as_in_the_transcript(request):
    def render(template: str, path: str = "/page") -> str:
        context = RequestContext(RequestFactory().get(path), {"name": "search", "page": path})
        return str(Template("{% load agents %}" + template).render(context))

    def tried(template: str) -> str:
        try:
            return render(template)
        except Exception as error:
            return f"! {type(error).__name__}: {error}"

    compare(Path(__file__).parent / "transcripts" / "tags.txt", {"render": tried}, request)
