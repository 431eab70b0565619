"""What the frozen facts and the problems say of themselves: `model.txt`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from starlette.exceptions import HTTPException

from awp_publish import problems
from awp_publish.model import (
    Action,
    Authentication,
    Catalog,
    DoorFacts,
    Idempotency,
    Page,
    Parameter,
    Paths,
    RateLimit,
    Status,
    Target,
    Workflow,
)
from awp_publish.model.catalog import snake_case, title_of, with_addresses
from awp_publish.model.listing import listing_of
from awp_publish.model.values import seconds_of, utc_text
from tests.documents.catalogs import make_action, make_catalog
from tests.function_transcripts import compare

READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "target": lambda given: (
        given and Target(given["method"], given["path"], tuple(Parameter(*p) for p in given.get("at", ())))
    ),
    "rate_limit": lambda given: RateLimit(*given),
    "idempotency": lambda given: Idempotency(*given),
    "scopes": tuple,
    "expose": frozenset,
}


def action(action_id: str = "ping", **given: Any) -> Action:
    return make_action(action_id, **{name: READ.get(name, lambda value: value)(each) for name, each in given.items()})


def says(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an action says of itself, alone on a site with a door."""
    one = action(**given)
    catalog = make_catalog(one)
    names = ("is_public", "auth_required", "route_authenticates", "method", "remembers", "intent", "side_effect")
    more = ("sensitivity", "is_repeatable", "is_irreversible", "is_background", "is_write")
    values = {name: getattr(one, name) for name in (*names, *more)}
    values["exposed"] = [door for door in ("woa", "plain", "mcp", "route", "job") if one.is_exposed_at(door)]
    values["for"] = [one.is_for(scopes) for scopes in (None, frozenset[str](), frozenset({"buy"}))]
    values["plain inputs"] = one.target.takes_plain_inputs if one.target else None
    values["pattern"] = one.target.pattern().pattern if one.target else None
    values["at"] = [*catalog.endpoint_of(one), catalog.invoke_path_of(one)]
    values["observed"] = replace(catalog, is_observed=True).own_route(one) is one.target
    values["guarded"] = [catalog.is_guarded(one), make_catalog(one, site={"rate_limit": RateLimit(1)}).is_guarded(one)]
    return values


def names(catalog: Catalog) -> dict[str, Any]:
    return {
        "actions": [[each.id, each.requires, each.depends_on, each.is_required] for each in catalog.actions],
        "agents": [[each.id, dict(each.operations)] for each in catalog.agents],
        "pages": [[each.path, each.actions] for each in catalog.pages],
        "workflows": [each.id for each in catalog.site.workflows],
        "degraded": sorted(catalog.status.degraded_actions),
        "signs in": getattr(catalog.sign_in, "id", None),
        "gives tokens": getattr(catalog.token_source, "id", None),
        "addresses of tokens": sorted(catalog.token_addresses),
        "own paths": sorted(path for path in catalog.own_paths if "well-known" not in path),
    }


def views(actions: list[dict[str, Any]], login: str = "/login") -> list[dict[str, Any]]:
    """Return what a catalog of actions shows to nobody, to a caller, to one with a scope, and at a door."""
    catalog = make_catalog(
        *(action(**given) for given in actions),
        site={
            "authentication": Authentication(endpoints={"login": login}),
            "workflows": (Workflow("both", "Both", ("a", "b")), Workflow("one", "One", ("a",))),
        },
        pages=(Page("/", "Home", actions=("a", "b")),),
        status=Status(True, frozenset({"a", "b"})),
        doors=(DoorFacts("mcp", "1", "/mcp"),),
        documents=frozenset({"/agent.json"}),
        paths=Paths(root="/r", invoke="/call?agent={agent_id}"),
    )
    seen = [catalog.visible_to(scopes) for scopes in (None, frozenset[str](), frozenset({"buy"}))]
    return [names(each) for each in (*seen, catalog.exposed_at("mcp"))]


def listed(only_allowed: bool | None, own_server: Any, scopes: dict[str, str], actions: list[dict[str, Any]]) -> Any:
    """Return which actions a door lists to nobody, to a caller, to one with a scope."""
    facts = Authentication("oauth2", own_server=own_server, scopes=scopes)
    rule = listing_of(make_catalog(site={"authentication": facts}), only_allowed)
    callers = (None, frozenset[str](), frozenset({"buy"}))
    return [[given["action_id"] for given in actions if rule.shows(action(**given), whose)] for whose in callers]


def problem(one: problems.Problem) -> list[Any]:
    return [type(one).__name__, one.status, one.code, one.detail, one.advice, dict(one.members), dict(one.headers)]


def kind_of(slug: str) -> type[problems.Problem]:
    return next(kind for kind in problems.ALL if kind.slug == slug)


def refusal(status: int, document: Any, *codes: str) -> list[Any]:
    return problem(problems.refusal(problems.Refused, status, document, dict.fromkeys(codes, "Do."), "Otherwise."))


OF_KINDS = (
    "slug",
    "default_status",
    "is_refusal",
    "lacks",
    "title",
    "default_recovery",
    "unlinked_recovery",
    "recoveries",
)

FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "action": says,
    "views": views,
    "listed": listed,
    "limit": lambda *given: [str(RateLimit(*given)), RateLimit(*given).window, RateLimit(*given).seconds],
    "seconds": seconds_of,
    "utc": lambda text, *precision: utc_text(datetime.fromisoformat(text), *precision),
    "title": title_of,
    "snake": snake_case,
    "addresses": lambda scheme: with_addresses(scheme, lambda address: f"<{address}>"),
    "shorten": problems.shorten,
    "nearest": problems.nearest,
    "mean": problems.did_you_mean,
    "in_seconds": problems.in_seconds,
    "sentence": problems.end_sentence,
    "below": problems.below,
    "phrase": problems.phrase_of,
    "code": lambda slug: [problems.code_of(slug), problems.slug_of(problems.code_of(slug))],
    "refusal": refusal,
    "raised": lambda status, detail, headers=None: problem(
        problems.raised(HTTPException(status, detail, headers), {"SOLD_OUT": "Wait."})
    ),
    "invalid": lambda violations, *more: problem(
        problems.InvalidInput.of([problems.Violation(*each) for each in violations], *more)
    ),
    "advice": lambda slug, status, after: kind_of(slug)("", status=status, headers=[("Retry-After", after)]).advice,
    "all": lambda: [[getattr(kind, name) for name in OF_KINDS] for kind in (problems.Problem, *problems.ALL)],
}


def test_facts_and_problems_say_what_was_reviewed(request):
    compare(Path(__file__).parent / "model.txt", FUNCTIONS, request)
