"""The public projects: where each is from, what it needs, and how its tests are run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Project:
    """A public project.

    `python` is the version it needs, `requires` are arguments of pip and `tests` of Python, both in its checkout.
    `settings` is the settings module of a Django project, `extra` the extra of ours that the project gets. `path` is
    where its modules are. `files` are made before its tests, `edits` are what a file says and should say, and `prepare`
    are arguments of Python that are run first. A project with `serves` is tested through a server of this
    application, at the address `http://NAME:PORT`; one with `databases` in a PostgreSQL server that has them, by their
    owners of the same names.
    """

    repository: str
    requires: tuple[str, ...]
    tests: tuple[str, ...]
    python: str = "3.13"
    settings: str = ""
    path: str = "."
    extra: str = "fastapi"
    files: Mapping[str, str] = field(default_factory=dict)
    edits: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    prepare: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    serves: str = ""
    databases: Mapping[str, str] = field(default_factory=dict)
    """The file in the checkout that fills each database, "" for none."""


_PYTEST: Final = ("-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider")
_DJANGO: Final = ("manage.py", "test", "--noinput")
_DJANGO_PYTEST: Final = ("pytest", "pytest-django", "pytest-asyncio")
_SPOOLMAN: Final = ("-r", "requirements.txt", "pytest", "pytest-asyncio")
PROJECTS: Final[Mapping[str, Project]] = {
    "linkding": Project(
        repository="sissbruecker/linkding",
        extra="django",
        settings="bookmarks.settings.dev",
        requires=(
            *("beautifulsoup4", "bleach", "bleach-allowlist", "django>=6.0.7", "djangorestframework", "huey"),
            *("markdown", "mozilla-django-oidc", "requests", "waybackpy", "django-debug-toolbar", *_DJANGO_PYTEST),
            "pytest-xdist",
        ),
        tests=(*_PYTEST, "-n", "2", "--ignore", "bookmarks/tests_e2e"),
        files={"data/.keep": ""},
    ),
    "healthchecks": Project(
        repository="healthchecks/healthchecks",
        extra="django",
        settings="hc.settings",
        requires=("-r", "requirements.txt", "time-machine"),
        tests=_DJANGO,
    ),
    "pretalx": Project(
        repository="pretalx/pretalx",
        extra="django",
        settings="pretalx.common.settings.test_settings",
        path="src",
        requires=("-e", ".[dev]"),
        tests=(*_PYTEST, "-n", "2", "-p", "no:sugar", "-o", "filterwarnings=", "src/tests"),
    ),
    "django-helpdesk": Project(
        repository="django-helpdesk/django-helpdesk",
        extra="django",
        settings="awp_helpdesk",
        requires=(".", "--group", "test", "--group", "teams", "packaging"),
        tests=(*_DJANGO, "tests"),
        path="src",
        files={"awp_helpdesk.py": 'from demodesk.config.settings import *\nROOT_URLCONF = "tests.urls"\n'},
    ),
    "djangoproject.com": Project(
        repository="django/djangoproject.com",
        extra="django",
        settings="djangoproject.settings.dev",
        requires=("-r", "requirements/tests.txt"),
        tests=_DJANGO,
        python="3.12",
        prepare=("manage.py", "compilemessages"),
        databases={"djangoproject": "", "code.djangoproject": "tracdb/trac.sql"},
    ),
    "django-ninja": Project(
        repository="vitalik/django-ninja",
        extra="django",
        settings="demo.settings",
        requires=("-e", ".", "psycopg2-binary", *_DJANGO_PYTEST),
        tests=(*_PYTEST, "tests"),
        path="tests/demo_project",
    ),
    "bakerydemo": Project(
        repository="wagtail/bakerydemo",
        extra="django",
        settings="bakerydemo.settings.test",
        requires=("-r", "requirements/base.txt"),
        tests=_DJANGO,
        environment={"SECRET_KEY": "only for tests"},
    ),
    "babybuddy": Project(
        repository="babybuddy/babybuddy",
        extra="django",
        settings="babybuddy.settings.test",
        # Its Pipfile, without the pins of what these need.
        requires=(
            *("boto3~=1.0", "dj-database-url~=2.0", "django~=5.0", "django-filter~=25.0", "django-imagekit~=6.0"),
            *("django-storages~=1.0", "django-widget-tweaks~=1.0", "djangorestframework~=3.0", "faker~=36.0"),
            *("pillow~=11.0", "plotly~=5.0", "python-dotenv~=1.0", "pyyaml~=6.0", "uritemplate~=4.0"),
            *("whitenoise~=6.0", "django-taggit~=6.0", "django-qr-code~=4.0", "django-cors-headers~=4.0"),
            *("django-dbsettings~=1.0", "django-import-export~=4.0", "inflection", "django-axes[ipware]~=7.0", "tblib"),
        ),
        tests=_DJANGO,
        python="3.12",
    ),
    "django-todo": Project(
        repository="shacker/django-todo",
        extra="django",
        settings="test_settings",
        requires=("-e", ".", *_DJANGO_PYTEST),
        tests=_PYTEST,
        python="3.12",
    ),
    "realworld-django-ninja": Project(
        repository="c4ffein/realworld-django-ninja",
        extra="django",
        settings="config.settings",
        requires=(
            *("django==5.2.1", "django-cors-headers==4.3.1", "django-extensions==3.2.3", "django-ninja==1.4.1"),
            *("jwtninja", "email-validator", "markdown==3.4.3", "parameterized==0.9.0", "psycopg2-binary"),
        ),
        tests=(*_DJANGO, "apps"),
        python="3.12",
        environment={"DEBUG": "True", "DATABASE_URL": ":memory:"},
    ),
    "ephios": Project(
        repository="ephios-dev/ephios",
        extra="django",
        settings="ephios.settings",
        requires=("-e", ".", "--group", "dev", *_DJANGO_PYTEST, "pytest-xdist"),
        tests=(*_PYTEST, "-n", "2", "tests"),
        environment={
            "DEBUG": "False",
            "ALLOWED_HOSTS": "*",
            "SITE_URL": "https://testserver",
            "ADMINS": "a <a@b.example>",
            "DATABASE_URL": "sqlite:///:memory:",
            "EMAIL_URL": "dummymail://",
            "DEFAULT_FROM_EMAIL": "a@b.example",
            "SERVER_EMAIL": "a@b.example",
        },
    ),
    "mealie": Project(
        repository="mealie-recipes/mealie",
        python="3.12",
        requires=(".", "openai<1.50", "pytest>=8,<9", "pytest-asyncio~=0.24.0", "freezegun", "rich"),
        tests=(*_PYTEST, "-o", "addopts=", "tests"),
    ),
    "spoolman": Project(
        repository="Donkie/Spoolman",
        requires=_SPOOLMAN,
        tests=(*_PYTEST, "tests"),
        python="3.12",
    ),
    "spoolman-server": Project(
        repository="Donkie/Spoolman",
        requires=_SPOOLMAN,
        tests=(*_PYTEST, "tests_integration/tests"),
        python="3.12",
        files={"client_v2/build/200.html": "<!doctype html><title>Spoolman</title>"},
        environment={"DB_TYPE": "sqlite", "SPOOLMAN_ALLOWED_HOSTS": "spoolman.example.com"},
        serves="spoolman.main:app",
    ),
    "filecodebox": Project(
        repository="vastsa/FileCodeBox",
        requires=("-r", "requirements.txt", "pytest", "httpx", "httpx2"),
        tests=(*_PYTEST, "tests"),
        python="3.12",
    ),
    "fastapi-users": Project(
        repository="fastapi-users/fastapi-users",
        requires=(
            *("-e", ".[sqlalchemy,beanie,oauth,redis]", "pytest", "pytest-asyncio", "pytest-mock", "httpx-oauth"),
            *("httpx", "asgi_lifespan"),
        ),
        tests=(*_PYTEST, "tests"),
        python="3.12",
    ),
    "florimond.dev": Project(
        repository="florimondmanca/www",
        # Its own requirements, of which Starlette is older than the oldest that we support.
        requires=(
            *("aiofiles==23.2.1", "arel==0.3.0", "asgi-sitemaps==1.0.0", "babel==2.14.0", "httpx==0.25.2"),
            *("jinja2==3.1.2", "markdown==3.5.1", "punq==0.7.0", "pygments==2.14.0", "python-frontmatter==1.0.1"),
            *("starlette==0.41.3", "typing_extensions", "uvicorn==0.24.0", "asgi-lifespan==2.1.0", "pillow==10.1.0"),
            *("pytest==7.4.3", "pytest-asyncio<0.23", "pytest-codeblocks==0.17.0", "black==23.12.0"),
        ),
        tests=(*_PYTEST, "tests", "-o", "addopts="),
        python="3.11",
        extra="pages",
        prepare=("-m", "babel.messages.frontend", "compile", "--domain", "messages", "-d", "locale"),
        edits={
            # A member of the scope that Starlette 0.33 alone looks at.
            "server/web/i18n/routing.py": (
                '"route_path": path[len(language_prefix) :]',
                '"root_path": scope.get("root_path", "") + language_prefix',
            ),
            # A busy machine takes longer than the five seconds of the default.
            "tests/conftest.py": ("LifespanManager(app)", "LifespanManager(app, 60, 60)"),
        },
    ),
}
