"""A store in memory and several workers: real servers, which do not start, and those that may."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette

from awp_publish import AgentPublisher, DeclarationError
from tests.client import TestClient
from tests.guarded import KEYS, make_shop
from tests.http.test_real_server import NO_CERTIFICATES, free_port, wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

STARLETTE = """
from starlette.applications import Starlette
from awp_publish import AgentPublisher, Site

site = Site(name="Shop", description="Sells things.", url="https://shop.example", store="{store}")

@site.agent("pay", idempotency="24h")
async def pay() -> str:
    "Pay books."
    return "paid"

app = AgentPublisher(Starlette(), site=site, check=False)
"""

DJANGO = """
import sys
import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from awp_publish import Site

site = Site(name="Shop", description="Sells things.", url="https://shop.example", store="{store}")

@site.agent("pay", idempotency="24h")
def pay() -> str:
    "Pay books."
    return "paid"

settings.configure(
    DEBUG=True,
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="a-secret-key-of-this-test-and-nobody-else",
    ROOT_URLCONF="urls",
    INSTALLED_APPS=["awp_publish_django"],
    MIDDLEWARE=["awp_publish_django.middleware.AgentPublisherMiddleware"],
    AWP_PUBLISH={{"SITE": "shop.site"}},
)
sys.modules["shop"] = sys.modules[__name__]
if __name__ == "__main__":
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)
else:
    app = get_wsgi_application()
"""

UVICORN = "-m uvicorn shop:app --port {port}"
GUNICORN = "-m gunicorn shop:app --bind 127.0.0.1:{port}"
ASGI = f"{GUNICORN} -k uvicorn.workers.UvicornWorker"

REFUSED = {
    "uvicorn": (STARLETTE, f"{UVICORN} --workers 2", ""),
    "uvicorn and WEB_CONCURRENCY": (STARLETTE, UVICORN, "2"),
    "gunicorn with uvicorn's worker": (STARLETTE, f"{ASGI} -w 2", ""),
    "gunicorn and WEB_CONCURRENCY": (STARLETTE, ASGI, "2"),
    "gunicorn and Django": (DJANGO, f"{GUNICORN} -w 2", ""),
    "gunicorn and Django, loaded before": (DJANGO, f"{GUNICORN} -w 2 --preload", ""),
    "gunicorn and Django, in threads": (DJANGO, f"{GUNICORN} -w 2 -k gthread --threads 2", ""),
}
SERVED = {
    "uvicorn": (STARLETTE, UVICORN, ""),
    "uvicorn in spite of WEB_CONCURRENCY": (STARLETTE, f"{UVICORN} --workers 1", "4"),
    "uvicorn that reloads": (STARLETTE, f"{UVICORN} --reload", ""),
    "gunicorn with uvicorn's worker": (STARLETTE, f"{ASGI} -w 1", ""),
    "gunicorn in spite of WEB_CONCURRENCY": (DJANGO, f"{GUNICORN} -w 1", "4"),
    "Django's own server": (DJANGO, "shop.py runserver 127.0.0.1:{port}", ""),
}


class Server:
    """A server with an application, and what it said."""

    def __init__(self, folder: Path, application: str, command: str, concurrency: str, store: str = "memory:") -> None:
        (folder / "shop.py").write_text(application.format(store=store))
        (folder / "urls.py").write_text("urlpatterns = []")
        self._said = folder / "said"
        port = free_port()
        self._address = f"http://127.0.0.1:{port}"
        path = os.pathsep.join((str(ROOT), str(ROOT / "contrib")))
        environment = {**os.environ, "PYTHONPATH": path, "WEB_CONCURRENCY": concurrency}
        if not concurrency:
            del environment["WEB_CONCURRENCY"]
        words = [sys.executable, *command.format(port=port).split()]
        with self._said.open("w") as said:
            self._process = subprocess.Popen(
                words, cwd=folder, env=environment, stdout=said, stderr=said, start_new_session=True
            )

    def begin(self) -> None:
        """Wait until it serves or has said why not."""
        wait_until(lambda: self.serves() or self.refusal or self._process.poll() is not None, 120)

    def serves(self) -> bool:
        try:
            return httpx2.get(f"{self._address}/agent.json", verify=NO_CERTIFICATES).status_code == 200
        except httpx2.TransportError:
            return False

    @property
    def said(self) -> str:
        return self._said.read_text()

    @property
    def refusal(self) -> str:
        """The first line that says that it does not start, "" if none does."""
        return next((line for line in self.said.splitlines() if "workers serve it" in line), "")

    def end(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)


@pytest.mark.parametrize("how", REFUSED)
def test_a_site_that_keeps_something_in_memory_does_not_start_with_several_workers(tmp_path, how):
    server = Server(tmp_path, *REFUSED[how])
    try:
        server.begin()
        assert not server.serves(), server.said
        assert "2 workers serve it" in server.refusal, server.said
        assert "of pay" in server.refusal
        assert 'Site(store="sqlite:///agents.db")' in server.refusal
    finally:
        server.end()


@pytest.mark.parametrize("how", SERVED)
def test_one_worker_is_one_whatever_stands_around_it(tmp_path, how):
    server = Server(tmp_path, *SERVED[how])
    try:
        server.begin()
        assert server.serves(), server.said
    finally:
        server.end()


@pytest.mark.parametrize(
    ("application", "command"),
    [(STARLETTE, f"{UVICORN} --workers 2"), (DJANGO, f"{GUNICORN} -w 2")],
    ids=["uvicorn", "gunicorn"],
)
def test_several_workers_start_on_a_store_that_they_share(tmp_path, application, command):
    server = Server(tmp_path, application, command, "", f"sqlite:///{tmp_path}/agents.db")
    try:
        server.begin()
        assert server.serves(), server.said
    finally:
        server.end()


@pytest.mark.parametrize(
    ("site", "declared"),
    [
        ({}, {"idempotency": "24h"}),
        ({"secret_keys": KEYS}, {"confirm": True}),
        ({}, {"requires": ["look"]}),
        ({}, {"execution": "async"}),
        ({}, {"rate_limit": "5/minute"}),
        ({"limits": {"rate_limit": "5/minute"}}, {}),
        ({"plugins": ["a2a"]}, {}),
    ],
    ids=["keys", "confirmations", "receipts", "jobs", "limits", "limits of the site", "A2A tasks"],
)
def test_state_that_workers_have_to_share_keeps_them_from_starting(monkeypatch, site, declared):
    """Where no server is known, WEB_CONCURRENCY tells how many there are."""

    def start() -> None:
        shop = make_shop(**site)

        @shop.agent("look")
        async def look() -> str:
            """Look at books."""
            return "books"

        @shop.agent("pay", **declared)
        async def pay() -> str:
            """Pay books."""
            return "paid"

        with TestClient(AgentPublisher(Starlette(), site=shop, check=False)):
            pass

    start()
    for text in ("", "1", "none", "0"):
        monkeypatch.setenv("WEB_CONCURRENCY", text)
        start()
    monkeypatch.setenv("WEB_CONCURRENCY", "3")
    with pytest.raises(DeclarationError, match="3 workers serve it"):
        start()


def test_a_site_that_keeps_no_state_starts_with_any_number_of_workers(monkeypatch):
    monkeypatch.setenv("WEB_CONCURRENCY", "3")
    shop = make_shop()

    @shop.agent("look")
    async def look() -> str:
        """Look at books."""
        return "books"

    with TestClient(AgentPublisher(Starlette(), site=shop)) as client:
        assert client.get("/agent.json").status_code == 200
