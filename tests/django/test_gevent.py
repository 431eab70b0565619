"""Workers of gunicorn that are greenlets: agents' calls are answered, and every page of the database still is."""

import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.django.servers import ROOT, environment, serving
from tests.processes import run

pytest.importorskip("gevent")
COMMAND = ("gunicorn", "-k", "gevent", "--log-level", "error", "--bind", "{place}", "tests.django.green:application")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GREEN_DATABASE", str(tmp_path_factory.mktemp("green") / "green.db"))
        assert run("tests.django.green", cwd=ROOT, env=environment()).returncode == 0
        with serving({"gevent": COMMAND}) as addresses:
            yield addresses["gevent"]


def test_pages_of_the_database_are_answered_after_calls_of_every_kind(server):
    with httpx2.Client(base_url=server, timeout=20) as client:

        def call(agent: str, given: object = None, **headers: str) -> httpx2.Response:
            return client.post(f"/agents/{agent}/invoke", json={"input": given or {}}, headers=headers)

        assert client.get("/page").status_code == 200
        for _ in range(2):
            assert call("count").json() == {"users": 0}
            assert call("count_async").json() == 0
            assert client.get("/page").text == "<p>0 users</p>"
        first = call("enrol", **{"idempotency-key": "ann"})
        assert call("enrol", **{"idempotency-key": "ann"}).json() == first.json() == {"id": 1}
        accepted = call("count_later")
        assert accepted.status_code == 202
        for _ in range(600):
            job = client.get(urlsplit(accepted.headers["location"]).path).json()
            if "result" in job:
                break
            time.sleep(0.05)
        assert job.get("result") == 1, job
        assert [client.get("/page").text for _ in range(3)] == ["<p>1 users</p>"] * 3
