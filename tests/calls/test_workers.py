"""How many processes serve an application is read from the server's command line or from WEB_CONCURRENCY."""

import sys

import pytest

from awp_publish.calls.workers import count_workers


@pytest.mark.parametrize(
    ("command", "concurrency", "workers"),
    [
        ("uvicorn shop:app --workers 3 --port 80", "5", 3),
        ("gunicorn -k gthread -w4 shop:app", "", 4),
        ("hypercorn --workers=2 shop:app", "", 2),
        ("gunicorn shop:app -w", "5", 5),
        ("manage.py runserver", "7", 7),
        ("uvicorn --root-path --workers 2 shop:app", "", 2),
        ("uvicorn --root-path /shop -w 2 shop:app", "", 2),
        ("uvicorn shop:app", " 2 ", 2),
        ("uvicorn shop:app", "0", 1),
        ("uvicorn shop:app", "many", 1),
        ("uvicorn shop:app", "9" * 9, 1),
        ("uvicorn shop:app", "", 1),
    ],
)
def test_the_command_line_says_how_many_workers_there_are_or_else_the_environment(
    monkeypatch, command, concurrency, workers
):
    monkeypatch.setattr(sys, "argv", command.split())
    monkeypatch.setenv("WEB_CONCURRENCY", concurrency)
    assert count_workers() == workers
