"""What people read in the admin is in the project's language, as far as its catalogues have it."""

import html
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from awp_publish_django.admin import COLUMNS
from awp_publish_django.models import JobRecord
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import call_command
from django.template import engines
from django.test import override_settings
from django.utils import translation

from tests.django.signing_in import PASSWORD, DjangoAgent, open_asgi, open_wsgi
from tests.django.test_sign_in import MIDDLEWARE, settings_of

LOCALE = "django.middleware.locale.LocaleMiddleware"
WORDS = {
    "": "Content-Type: text/plain; charset=UTF-8\n",
    "Agents": "Agenten",
    "What waits for approval": "Was auf Freigabe wartet",
    "background job": "Auftrag",
    "Allow": "Erlauben",
    "Cancel": "Abbrechen",
    "It may": "Es darf",
    "Let %(client)s act for you?": "Darf %(client)s f\u00fcr Sie handeln?",
    "On %s": "Am %s",
    "You are not signed in": "Sie sind nicht angemeldet",
    "progress": "Fortschritt",
}


def write_catalogue(path: Path) -> None:
    """Write a catalogue as msgfmt does (GNU gettext, the format of MO files)."""
    pairs = sorted((key.encode(), value.encode()) for key, value in WORDS.items())
    start = 28 + 16 * len(pairs)
    ids, texts, data = b"", b"", b""
    for key, _ in pairs:
        ids += struct.pack("<II", len(key), start + len(data))
        data += key + b"\0"
    for _, value in pairs:
        texts += struct.pack("<II", len(value), start + len(data))
        data += value + b"\0"
    head = struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 0)
    path.parent.mkdir(parents=True)
    path.write_bytes(head + ids + texts + data)


def test_the_admin_speaks_the_projects_language(tmp_path):
    write_catalogue(tmp_path / "de" / "LC_MESSAGES" / "django.mo")
    with override_settings(LOCALE_PATHS=[str(tmp_path)], USE_I18N=True), translation.override("de"):
        assert str(apps.get_app_config("awp_publish_django").verbose_name) == "Agenten"
        assert str(JobRecord._meta.verbose_name) == "Auftrag"
        assert "Fortschritt" in [str(getattr(column, "short_description", "")) for column in COLUMNS]
        folder = Path(apps.get_app_config("awp_publish_django").path) / "templates"
        [page] = [page for page in folder.rglob("*.html") if "awp_waiting" in page.read_text()]
        block = page.read_text().partition("{% block content %}")[2].partition("{{ block.super }}")[0]
        shown = engines["django"].from_string("{% load i18n %}" + block).render({"awp_waiting": []})
        assert "Was auf Freigabe wartet" in shown


@pytest.mark.parametrize("open_project", [open_wsgi, open_asgi])
def test_a_person_is_asked_in_their_own_language_and_else_in_english(tmp_path, open_project):
    write_catalogue(tmp_path / "de" / "LC_MESSAGES" / "django.mo")
    own = [LOCALE, *MIDDLEWARE]
    languages: dict[str, Any] = {
        "LOCALE_PATHS": [str(tmp_path)],
        "USE_I18N": True,
        "LANGUAGES": [("en", "E"), ("de", "D"), ("fr", "F")],
    }
    with override_settings(**settings_of(MIDDLEWARE=own, **languages)), open_project() as client:
        User.objects.create_user("ann", password=PASSWORD)
        for language, spoken, words in (("de", "de", "Erlauben"), ("fr", "en", "Allow"), ("en", "en", "Allow")):
            client.headers["accept-language"] = language
            agent = DjangoAgent(client, client)
            page = agent.follow(agent.ask(scope=None))
            assert f'<html lang="{spoken}">' in page.text
            assert f'value="allow">{words}</button>' in page.text
            title = html.unescape(re.findall("<h1>(.*?)</h1>", page.text)[0])
            assert title.startswith("Darf ") is (language == "de")
            client.cookies.clear()


def test_no_migration_is_needed_for_words():
    call_command("makemigrations", "awp_publish_django", check=True, dry_run=True, verbosity=0)
