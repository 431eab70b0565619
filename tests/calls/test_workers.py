"""How many processes serve an application is read from the server that calls it."""

from types import SimpleNamespace
from typing import Any

import pytest

from awp_publish.calls.workers import count_workers


def called_by(module: str, **local: Any) -> int:
    """Count workers from within a function of a server's module, with local variables as the server has them."""
    names = ", ".join(local)
    space: dict[str, Any] = {"__name__": module, "count_workers": count_workers}
    exec(f"def serve({names}):\n    return count_workers()", space)
    return int(space["serve"](**local))


@pytest.mark.parametrize(
    ("module", "local", "workers"),
    [
        ("gunicorn.arbiter", {"self": SimpleNamespace(cfg=SimpleNamespace(workers=4))}, 4),
        ("uvicorn._subprocess", {"config": SimpleNamespace(workers=3, reload=False)}, 3),
        ("uvicorn._subprocess", {"config": SimpleNamespace(workers=3, reload=True)}, 1),
        ("hypercorn.asyncio.run", {"config": SimpleNamespace(workers=2, use_reloader=False)}, 2),
        ("hypercorn.asyncio.run", {"config": SimpleNamespace(workers=2, use_reloader=True)}, 1),
        ("uvicorn.server", {}, 1),
        ("a.server.that.nobody.knows", {}, 5),
    ],
)
def test_the_server_says_how_many_workers_it_has(monkeypatch, module, local, workers):
    monkeypatch.setenv("WEB_CONCURRENCY", "5")
    assert called_by(module, **local) == workers


@pytest.mark.parametrize(("text", "workers"), [("7", 7), (" 2 ", 2), ("0", 1), ("many", 1), ("9" * 9, 1), ("", 1)])
def test_without_a_known_server_the_environment_says_it(monkeypatch, text, workers):
    monkeypatch.setenv("WEB_CONCURRENCY", text)
    assert count_workers() == workers
