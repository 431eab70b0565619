"""What items of the bridge are read and written as: `items.txt`, in the words of `tests/function_transcripts.py`.

A failure is given as the item that tells of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.maps.failures import RuntimeFailure
from awp_publish.plugins.actions_json import items
from awp_publish.plugins.actions_json.runtimes import PairedRuntime
from awp_publish.problems import Problem, RateLimited
from tests.function_transcripts import compare
from tests.guarded import make_shop


def _tried(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        try:
            return function(*given)
        except RuntimeFailure as failure:
            return items.error_item(failure)

    return call


def _failure(code: Any, message: str, evidence: Mapping[str, Any], *about: str | None) -> Any:
    return items.error_item(RuntimeFailure(code, message, evidence), *about)


def _write(item: dict[str, Any], *, breaks: bool = False) -> str:
    return items.write_item({**item, **({"bad": object()} if breaks else {})})


def _refusal(status: int, headers: dict[str, str]) -> Any:
    site = make_shop()
    site.freeze()
    problem: Problem = RateLimited("Slowly.", headers=list(headers.items()))
    problem.status = status
    return items.error_item(items.refusal_of(problem, ProblemRenderer(site.catalog)))


def _fit(selectors: dict[str, Any], runtime: dict[str, Any]) -> Any:
    read = items.Selectors.read(selectors)
    facts = {"id": "r", "url": "https://shop.example/basket", "title": "Basket", **runtime}
    return [{name: value for name, value in asdict(read).items() if value is not None}, read.fit(_runtime(facts))]


def _runtime(facts: dict[str, Any]) -> Any:
    if "key" not in facts:
        return SimpleNamespace(**facts)
    made = PairedRuntime(facts["id"], None, None, facts["url"])  # type: ignore[arg-type]
    made.title, made.key, made.authorization_id = facts["title"], facts["key"], facts.get("authorization_id")
    return made


def test_items_are_read_and_written_as_in_the_transcript(request):
    constants = ("PROTOCOL", "VERSION", "SEVERITIES", "ANSWERS", "ITEMS", "STATUSES", "REFUSAL_HEADERS", "MEMBERS")
    functions: dict[str, Callable[..., Any]] = {
        "constants": lambda: {name: getattr(items, name) for name in constants},
        "read": _tried(items.read_item),
        "text": _tried(lambda *given: items.read_text(*given)),
        "text_in": _tried(lambda item, name, where: items.read_text(item, name, where=where)),
        "required": _tried(lambda *given: items.require_text(*given)),
        "object": _tried(items.require_object),
        "failure": _failure,
        "write": _write,
        "write_broken": lambda item: _write(item, breaks=True),
        "error": _tried(lambda item: items.error_item(items.read_error(item))),
        "of": lambda status, problem: items.error_item(items.failure_of(status, problem)),
        "refusal": _refusal,
        "fit": _tried(_fit),
    }
    compare(Path(__file__).parent / "items.txt", functions, request)
