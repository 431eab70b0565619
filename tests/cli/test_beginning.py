"""`awp-publish init` in a project that is there: what it finds, what it writes, and that the result works."""

import json
import os
import re
import runpy
from pathlib import Path

import pytest
from hypothesis import assume, given, strategies as st

from awp_publish import cli
from awp_publish.cli.sources import FileChange
from tests import processes
from tests.client import TestClient
from tests.conftest import run_command

ROOT = Path(__file__).parents[2]
FASTAPI = '''"""A shop of lamps."""

from typing import Annotated

import fastapi
from fastapi import FastAPI, Query

app: FastAPI = FastAPI(
    title='Lamps & "Oil"',
    description="Find lamps. And oil.",
)


@app.get("/lamps")
def list_lamps(q: Annotated[str, Query()] = "") -> list[str]:
    """List lamps."""
    return [one for one in ("brass", "iron") if q in one]


@app.delete("/lamps")
def remove_lamps() -> None:
    """Remove all lamps."""


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app)
'''
STARLETTE = """from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route


async def home(request):
    return HTMLResponse("<h1>Lamps</h1>")


async def lamps(request) -> JSONResponse:
    \"\"\"List lamps.\"\"\"
    return JSONResponse(["brass"])


site = "a name that is taken"
api = Starlette(routes=[Route("/", home), Route("/lamps", lamps)])"""


def run(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'contrib'}"}
    for name in ("DJANGO_SETTINGS_MODULE", "AWP_PUBLISH_URL"):
        environment.pop(name, None)
    done = processes.run(*arguments, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def publish(folder: Path, *arguments: str) -> str:
    done = run_command(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_project_of_fastapi_is_found_shown_and_written(tmp_path, monkeypatch, capsys):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "main.py").write_text(FASTAPI)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "main.py").write_text(FASTAPI)
    (tmp_path / "shop" / "broken.py").write_text("FastAPI(")
    for name in (".hidden", "venv", "migrations", "packages", "a/b/c/d/e"):  # nothing of these is the project's own
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "main.py").write_text(FASTAPI)
    (tmp_path / "packages" / "pyvenv.cfg").touch()
    (tmp_path / "shop" / "test_main.py").write_text(FASTAPI)
    (tmp_path / "shop" / "app.py").write_text(FASTAPI.replace("app:", "other:"))  # main.py is more usual
    (tmp_path / "linked").symlink_to(tmp_path / "shop")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "+++ shop/main.py" in shown
    assert "Would write" in shown
    assert (tmp_path / "shop" / "main.py").read_text() == FASTAPI
    assert cli.main(["init", "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert (written["framework"], written["is_written"], len(written["files"])) == ("FastAPI", True, 1)
    assert written["files"][0]["diff"] in shown + "\n"
    text = (tmp_path / "shop" / "main.py").read_text()
    added = [line for line in text.splitlines() if line not in FASTAPI.splitlines()]
    assert added == [
        "import os",
        "from awp_publish import AgentPublisher, Site",
        "site = Site(",
        '    name="Lamps & \\"Oil\\"",',
        '    description="Find lamps.",',
        '    url=os.environ.get("AWP_PUBLISH_URL") or "http://127.0.0.1:8000",  # the public address',
        '    plugins=["mcp"],',
        "site.include()  # the routes that only read; @site.action declares others",
        "app.add_middleware(AgentPublisher, site=site)",
    ]
    lines = text.splitlines()
    assert lines[lines.index("import os") - 1] == "from fastapi import FastAPI, Query", "behind the last import"
    assert json.loads(publish(tmp_path, "call", "shop.main:app", "list_lamps", "q=br")) == ["brass"]
    assert cli.main(["init"]) == 2
    assert "uses awp_publish already" in capsys.readouterr().err


def test_the_commands_that_it_names_find_a_package_in_src(tmp_path, monkeypatch, capsys):
    (tmp_path / "src" / "shop").mkdir(parents=True)
    (tmp_path / "src" / "shop" / "main.py").write_text(FASTAPI)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init"]) == 0
    shown = capsys.readouterr().out
    assert "awp-publish show shop.main:app\n" in shown
    assert "uvicorn --app-dir src shop.main:app\n" in shown
    assert json.loads(publish(tmp_path, "call", "shop.main:app", "list_lamps", "q=br")) == ["brass"]


@pytest.mark.parametrize("place", ["shop/main.py", "src/shop/main.py", "shop/main/__init__.py"])
def test_an_application_is_named_as_a_server_takes_it(tmp_path, monkeypatch, capsys, place):
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).write_text(f"{FASTAPI}\nother = FastAPI()\n")
    monkeypatch.chdir(tmp_path)
    for target, words in (
        ("shop.main", "There are several applications"),
        ("shop.main:away", "No FastAPI, Starlette or Django application was found here."),
        ("shop.gone:app", "or its application: module:app."),
    ):
        assert cli.main(["init", target]) == 2
        assert words in capsys.readouterr().err
    assert cli.main(["init", "shop.main:other"]) == 0
    assert "other.add_middleware(AgentPublisher" in (tmp_path / place).read_text()
    assert "awp-publish show shop.main:other\n" in capsys.readouterr().out


def test_a_module_of_starlette_is_written_as_it_is_named(tmp_path, capsys):
    (tmp_path / "pages.py").write_bytes(STARLETTE.replace("\n", "\r\n").encode())
    (tmp_path / "other.py").write_text(STARLETTE)
    assert cli.main(["init", str(tmp_path)]) == 2
    assert "several applications" in capsys.readouterr().err
    assert cli.main(["init", str(tmp_path / "pages.py")]) == 0
    text = (tmp_path / "pages.py").read_bytes().decode()
    assert "\r\nagents_site.include()" in text
    assert "\n" not in text.replace("\r\n", "")
    shown = publish(tmp_path, "show", "pages:api", "/sitemap.xml")
    assert "http://127.0.0.1:8000/" in shown


@pytest.mark.slow
def test_a_project_of_django_is_written_and_works(tmp_path, capsys):
    run(tmp_path, "django", "startproject", "shop", ".")
    views = "from django.http import HttpResponse\n\n\ndef lamps(request):\n    return HttpResponse('<h1>Lamps</h1>')\n"
    (tmp_path / "shop" / "views.py").write_text(views)
    urls = tmp_path / "shop" / "urls.py"
    urls.write_text(
        "from django.urls import path\nfrom shop.views import lamps\n\nurlpatterns = [path('lamps', lamps)]\n"
    )
    assert cli.main(["init", str(tmp_path), "--dry-run"]) == 0
    assert not (tmp_path / "shop" / "agents.py").exists()
    assert cli.main(["init", str(tmp_path)]) == 0
    assert "Django project" in capsys.readouterr().out
    assert '+AWP_PUBLISH = {"SITE": "shop.agents.site"}' not in (tmp_path / "shop" / "settings.py").read_text()
    answer = run(tmp_path, "manage.py", "agents", "check")
    assert " 0 errors" in answer
    assert "/lamps" in run(tmp_path, "manage.py", "agents", "list")
    assert cli.main(["init", str(tmp_path)]) == 2


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "No FastAPI, Starlette or Django application was found here."),
        (
            {"main.py": "from fastapi import FastAPI\n\n\ndef make():\n    return FastAPI()\n"},
            "No FastAPI, Starlette or Django application",
        ),
        (
            {"manage.py": 'setdefault("DJANGO_SETTINGS_MODULE", "lost.settings")'},
            "lost.settings, which are not in this folder",
        ),
    ],
)
def test_init_reports_a_missing_application_with_a_remedy(tmp_path, capsys, files, words):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert cli.main(["init", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err
    assert cli.main(["init", str(tmp_path / "nowhere")]) == 2
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    "source",
    [
        "from __future__ import annotations\nfrom fastapi import FastAPI\n\napp = FastAPI()\n",
        "from fastapi import FastAPI as Api\n\napp = Api()",
        "import fastapi\r\n\r\napp: object = fastapi.FastAPI()\r\n",
        "try:\n    from starlette.applications import Starlette\n    from starlette.routing import Route\n"
        "except ImportError:\n    raise\napp = Starlette(routes=[Route('/', print)])\n",
        "from fastapi import FastAPI\n\n\ndef make():\n    app = FastAPI()\n    return app\n\n\napp = make()\n",
        'LINES = "a\x0cb\u2028c"\nimport os\nfrom fastapi import FastAPI\n\napp = FastAPI()\n'
        'if __name__ == "main":\n    1\n',
    ],
)
def test_an_application_is_published_however_it_is_imported(tmp_path, capsys, source):
    module = tmp_path / "lamp-shop" / "main.py"
    module.parent.mkdir()
    module.write_bytes(source.encode())
    assert cli.main(["init", str(module.parent), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["is_written"]
    with TestClient(runpy.run_path(str(module))["app"]) as client:
        assert client.get("/llms.txt").text.startswith("# Lamp shop\n")


LINES = st.builds("".join, st.lists(st.sampled_from(["a\n", "b\n", "\n"]), max_size=3)) | st.just("a\nb")


@given(st.none() | LINES, LINES)
def test_a_shown_change_leads_from_the_text_before_to_the_text_after(before, after):
    assume((before or "") != after)
    name, new, *lines = re.findall(
        r"^([-+ ].*\n)(\\.*\n)?", FileChange(Path("a.py"), before, after).diff(), re.MULTILINE
    )
    assert (name[0], new[0]) == (f"--- {'/dev/null' if before is None else 'a.py'}\n", "+++ a.py\n")
    for kept, text in ((" -", before or ""), (" +", after)):
        assert "".join(line[1:-1] + "\n" * (not unended) for line, unended in lines if line[0] in kept) == text
