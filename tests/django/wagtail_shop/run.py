"""Fill the site, and call it as agents and visitors do: prints what was answered as JSON."""

import json
import sys
from io import StringIO
from typing import Any

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.test import Client  # noqa: E402
from wagtail.models import Locale, Page, Site  # noqa: E402

from tests.django.wagtail_shop.models import BlogPage, FormField, FormPage  # noqa: E402

checks, listed, shown = StringIO(), StringIO(), StringIO()
call_command("check", stdout=checks, stderr=checks)
call_command("migrate", run_syncdb=True, verbosity=0)
Locale.objects.create(language_code="en")
root = Page.add_root(title="Root", slug="root")
home = root.add_child(instance=BlogPage(title="Bakery", slug="home", body="<p>Welcome.</p>"))
Site.objects.create(hostname="localhost", root_page=home, is_default_site=True)
home.add_child(instance=BlogPage(title="Bread", slug="bread", body="<p>Rye and wheat.</p>"))
contact = FormPage(title="Contact", slug="contact")
contact.form_fields = [FormField(label="email", clean_name="email", field_type="email", required=True)]
home.add_child(instance=contact)
call_command("agents", "list", stdout=listed)
call_command("agents", "show", stdout=shown)

client = Client(SERVER_NAME="bakery.example", raise_request_exception=False)


def call(agent: str, **given: object) -> object:
    answer = client.post(f"/agents/{agent}/invoke", json.dumps({"input": given}), content_type="application/json")
    return [answer.status_code, answer.json() if "json" in answer["Content-Type"] else answer.content.decode()]


def ask(method: str, path: str, **options: Any) -> object:
    answer = getattr(client, method)(path, **options)
    return [answer.status_code, answer["Content-Type"].split(";")[0], answer.content.decode()[:200]]


json.dump(
    {
        "check": checks.getvalue(),
        "list": listed.getvalue(),
        "show": shown.getvalue(),
        "read": call("read_page", path="bread/"),
        "read nothing": call("read_page", path="cake/"),
        "contact": call("contact", email="ann@bakery.example"),
        "contact nobody": call("contact", email="nobody"),
        "unknown agent": call("nothing"),
        "unknown address": ask("get", "/agents/actions/nothing/more"),
        "posted to nothing": ask("post", "/agents/actions/nothing", data="{}", content_type="application/json"),
        "page": ask("get", "/bread/"),
        "markdown": ask("get", "/bread/", headers={"accept": "text/markdown"}),
        "without a slash": ask("get", "/bread"),
    },
    sys.stdout,
)
