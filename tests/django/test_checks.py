"""What `manage.py check` says of wrong settings, declarations and middleware."""

import json
import re
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path

import pytest
from awp_publish_django.checks import FETCH, TAG, UPDATE, USERS
from awp_publish_django.conf import KINDS
from awp_publish_django.management.commands.agents import Command
from awp_publish_django.publication import MIDDLEWARE
from awp_publish_django.templatetags.agents import register
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from django.template import Context, Template
from django.test import override_settings
from django.urls import path, re_path

from awp_publish import DeclarationError
from awp_publish.cli import add_commands
from tests.cli.test_hostile_output import hostile_site, obeyed
from tests.django.sites import view

ROOT = Path(__file__).parents[2]
HERE = "tests.django.sites"


def told(site: str | None, **settings: object) -> dict[str, str]:
    """Ids of the checks that complain, with what they say."""
    given = {"AWP_PUBLISH": {"SITE": f"{HERE}.{site}"}, "ROOT_URLCONF": HERE, **settings}
    with override_settings(**given):
        return {str(check.id): f"{check.msg} {check.hint}" for check in run_checks(tags=[TAG])}


def test_the_shop_has_nothing_to_complain_of():
    assert run_checks(tags=[TAG]) == []


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "is not set"),
        ({}, 'no "SITE"'),
        ({"SITE": 3}, "not of type str"),
        ({"SITE": "a.b", "RECENT_CALLS": True}, "not of type int"),
        ({"SITE": "a.b", "RECENT_CALLS": -1}, "must not be negative"),
        ({"SITES": "a.b"}, "Do you mean SITE?"),
        ({"SITE": "tests.django.nowhere.site"}, "No module named"),
        ({"SITE": "tests.django.sites.nothing"}, "nothing"),
        ({"SITE": "tests.django.sites.view"}, "not a Site"),
    ],
)
def test_wrong_settings_are_told(value, words):
    found = told(None, AWP_PUBLISH=value)
    assert list(found) == ["awp_publish.E001"]
    assert words in found["awp_publish.E001"]


def test_a_cache_that_would_give_html_to_agents_is_told():
    assert "first" in told("plain", MIDDLEWARE=[FETCH, MIDDLEWARE, UPDATE])["awp_publish.E007"]
    for order in ([UPDATE, MIDDLEWARE, FETCH], [UPDATE, FETCH, MIDDLEWARE], [MIDDLEWARE, UPDATE, FETCH]):
        assert "awp_publish.E007" not in told("plain", MIDDLEWARE=order)


@pytest.mark.parametrize(
    ("site", "words"),
    [
        ("several_methods_site", 'action "view": is reachable in several ways'),
        ("no_route_site", 'action "lost": no route of this application leads to'),
    ],
)
def test_wrong_declarations_are_told_with_a_remedy(site, words):
    found = told(site)
    assert list(found) == ["awp_publish.E002"]
    assert words in found["awp_publish.E002"]


def test_all_wrong_declarations_are_told_at_once():
    given = {"AWP_PUBLISH": {"SITE": f"{HERE}.several_errors_site"}, "ROOT_URLCONF": HERE}
    with override_settings(**given):
        found = [str(check.msg) for check in run_checks(tags=[TAG]) if check.id == "awp_publish.E002"]
    assert [message.partition(":")[0] for message in found] == ['action "lost"', 'action "view"']


def test_a_missing_middleware_and_one_in_the_wrong_place_are_told():
    assert "awp_publish.E003" in told("plain", MIDDLEWARE=[])
    assert "awp_publish.E004" in told("users_site", MIDDLEWARE=[MIDDLEWARE, USERS])
    assert "awp_publish.E004" not in told("users_site", MIDDLEWARE=[USERS, MIDDLEWARE])


def test_working_but_inadvisable_settings_are_reported():
    assert "http://shop.example" in told("insecure_site")["awp_publish.W001"]
    assert "/agent.json" in told("plain")["awp_publish.W002"]
    assert "/view" in told("shadowing_site")["awp_publish.W002"]
    with_script = (path("view", view), re_path(".*", view))  # which shows every address
    assert "awp_publish.W002" not in told("plain", ROOT_URLCONF=with_script)
    assert "order" in told("forgetful_site")["awp_publish.W003"]
    assert "A2A" in told("forgetful_of_tasks_site")["awp_publish.W003"]
    assert "awp_publish.W003" not in told("forgetful_site", DEBUG=True)
    assert "shop.example" in told("plain", ALLOWED_HOSTS=["books.example"])["awp_publish.W005"]
    assert "awp_publish.W005" not in told("plain", ALLOWED_HOSTS=[".example"])
    assert "https://shop.example/books" in told("plain", FORCE_SCRIPT_NAME="/books")["awp_publish.W008"]


def test_every_check_is_documented_and_has_a_hint():
    source, page = (ROOT / name for name in ("contrib/awp_publish_django/checks.py", "docs/django.md"))
    ids = re.findall(r'id="(awp_publish\.[EW]\d{3})"', source.read_text())
    assert len(set(ids)) == len(ids) == source.read_text().count("hint=")
    assert re.findall(r"^\| `(awp_publish\.\w+)` \|", page.read_text(), re.MULTILINE) == sorted(ids)
    tested = "".join(file.read_text() for file in (ROOT / "tests" / "django").glob("test_*.py"))
    assert [item for item in ids if item.removeprefix("awp_publish.") not in tested] == []


def test_every_setting_and_command_is_documented():
    page = (ROOT / "docs" / "django.md").read_text()
    assert [name for name in KINDS if f"| `{name}` |" not in page] == []
    parser = Command().create_parser("manage.py", "agents")
    assert [verb for verb in _verbs_of(parser) if f"agents {verb}" not in page and f"`{verb}`" not in page] == []


def test_every_tag_is_documented():
    page = (ROOT / "docs" / "django.md").read_text()
    assert [name for name in register.tags if name not in page] == []


# --- Commands ---


def test_the_command_says_what_is_wrong_and_only_check_what_could_be_better(capsys):
    with override_settings(AWP_PUBLISH={"SITE": f"{HERE}.insecure_site"}, ROOT_URLCONF=HERE):
        call_command("agents", "list", skip_checks=False)
        assert "W001" not in capsys.readouterr().err
        with suppress(CommandError):  # the site has no agents, which one of the documents needs
            call_command("agents", "check", skip_checks=False)
        assert capsys.readouterr().err.count("W001") == 1
        with override_settings(MIDDLEWARE=[]), pytest.raises(SystemCheckError, match="E003"):
            call_command("agents", "list", skip_checks=False)


def test_the_documents_are_checked_shown_and_exported(capsys, tmp_path):
    call_command("agents", "check")
    assert " 0 errors" in capsys.readouterr().out
    call_command("agents", "check", "--pages")
    assert " 0 errors" in capsys.readouterr().out
    call_command("agents", "show")
    assert "/agent.json" in capsys.readouterr().out.split()
    call_command("agents", "show", "/agent.json")
    shown = capsys.readouterr().out
    call_command("agents", "export", str(tmp_path))
    assert (tmp_path / "agent.json").read_text() == shown.strip()
    assert (tmp_path / ".well-known" / "woa.json").exists()
    with pytest.raises(CommandError, match="is not published"):
        call_command("agents", "show", "/nothing")


def test_the_approve_command_refuses_a_site_without_approval():
    with pytest.raises(CommandError, match="publishes every action without approval"):
        call_command("agents", "approve")


def test_documents_have_a_price_and_descriptions_a_score(capsys):
    call_command("agents", "show", "--tokens")
    listed = capsys.readouterr().out
    assert re.search(r"^ *\d+ +\d+  /agent\.json$", listed, re.MULTILINE)
    with suppress(CommandError):  # it ends so where there is something to say
        call_command("agents", "check", "--as-model")
    for line in capsys.readouterr().out.splitlines():
        assert line.startswith("warning: ") or " of 100; " in line or re.fullmatch(r"\w+ +\d+", line)


def test_every_verb_of_the_command_line_is_one_of_the_project_s(capsys, tmp_path, monkeypatch):
    own, of_project = ArgumentParser(), Command().create_parser("manage.py", "agents")
    add_commands(own.add_subparsers())
    verbs = [set(_verbs_of(parser)) for parser in (own, of_project)]
    assert verbs[1] - verbs[0] == {"list"}
    assert verbs[0] <= verbs[1]

    page = tmp_path / "page.html"
    page.write_text("<title>Books</title><main><h1>Emma</h1><p>A novel.</p></main>")
    call_command("agents", "markdown", str(page))
    assert "# Emma" in capsys.readouterr().out
    call_command("agents", "som", str(page), "--url", "https://shop.example/")
    assert json.loads(capsys.readouterr().out)["title"] == "Books"
    call_command("agents", "show", "--included", "--json")
    assert set(json.loads(capsys.readouterr().out)) == {"actions", "pages", "left_out"}
    call_command("agents", "dns")
    assert "_agents.shop.example." in capsys.readouterr().out
    call_command("agents", "robots")
    assert "SOM-Endpoint: https://shop.example" in capsys.readouterr().out
    call_command("agents", "traffic", "--json", "--days", "1")
    assert all(map(json.loads, capsys.readouterr().out.splitlines()))
    monkeypatch.chdir(tmp_path)
    call_command("agents", "init")
    assert "manage.py agents check" in (tmp_path / "agents.py").read_text()
    for words, told in (
        (["init"], "exists already"),
        (["check", "nowhere.json"], "nowhere.json"),
        (["synthesize", "http://127.0.0.1:9/"], "127.0.0.1"),
    ):
        with pytest.raises(CommandError, match=told):
            call_command("agents", *words)


def test_no_verb_of_the_project_prints_what_a_terminal_obeys(capsys, tmp_path):
    evil = "\x1b[2J\x9b31m\u202e\u2028"
    page, document = tmp_path / "page.html", tmp_path / "document.json"
    page.write_text(f"<title>Books{evil}</title><h1>Emma{evil}</h1><form action=/find><input name='q{evil}'></form>")
    document.write_text(json.dumps({"woa_version": "1", "agents": [{"id": f"order{evil}"}]}, ensure_ascii=False))
    with hostile_site(lambda _: ("404 Not Found", {"Content-Type": f"text/html{evil[:7]}"}, b"")) as url:
        for words in (
            ["list"],
            ["markdown", str(page)],
            ["som", str(page)],
            ["check", str(document)],
            ["check", f"{url}/agent.json"],
            ["check", "--as-model", str(document)],
            ["synthesize", f"{url}/", "--allow-private"],
            ["call", f"order{evil}"],
            ["call", "search", f"q{evil}=1"],
            ["call", "search", "--door", "mcp", f"q{evil}=1"],
            ["show", f"/no{evil}"],
            ["approve", f"no{evil}"],
        ):
            failure = ""
            try:
                call_command("agents", *words)
            except CommandError as error:
                failure = str(error)
            ran = capsys.readouterr()
            assert not obeyed(ran.out + ran.err + failure), words


def _verbs_of(parser):
    return next(action.choices for action in parser._actions if isinstance(action.choices, dict))


# --- Templates ---


def render(text: str) -> str:
    return Template("{% load agents %}" + text).render(Context())


def test_tags_write_what_the_documents_say():
    assert render('<form {% awas_action "search" %}>') == '<form data-awas-action="search">'
    assert render('{% awas_param "search" "q" styles="data-awas data-ai" %}').startswith(
        'data-awas-param="q" data-ai-param="q"'
    )
    assert render('{% awas_context "book" %} {% awas_result "search" %}') == (
        'data-awas-context="book" data-awas-result="search"'
    )
    assert '<link rel="' in render("{% head_links %}")
    assert 'toolname="search"' in render('{% awas_action "search" styles="tool" %}')
    assert render('{% webmcp_script nonce="abc" %}').endswith('/agents/webmcp.tools.js" nonce="abc"></script>')
    assert render("{% webmcp_hash %}").startswith("sha384-")
    assert '"identifier":"search"' in Template('{% load agents %}{% structured_result "search" found %}').render(
        Context({"found": {"pages": 1}})
    )
    for wrong in ('{% awas_action "nothing" %}', '{% awas_action "search" styles="data-x" %}'):
        with pytest.raises(DeclarationError):
            render(wrong)


def test_pages_get_a_link_header_unless_the_project_leaves_it_out(client):
    assert "/agent.json" in client.get("/page").headers["Link"]
    with override_settings(AWP_PUBLISH={"SITE": "tests.django.shop.agents.site", "LINK_HEADERS": False}):
        client.handler._middleware_chain = None
        assert "Link" not in client.get("/page").headers
