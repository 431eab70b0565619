"""Catalogs in words."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from awp_publish import Site
from tests.client import TestClient
from tests.guarded import KEYS


def a_site(**options: Any) -> Site:
    return Site("Shop", "Sells things.", url="https://shop.example", secret_keys=KEYS, **options)


def described(value: Any) -> Any:
    """Return a fact without what is its default, and functions by their names."""
    if is_dataclass(value) and not isinstance(value, type):
        pairs = [(each.name, getattr(value, each.name)) for each in fields(value) if each.repr]
        defaults = {
            each.name: each.default if each.default_factory is MISSING else each.default_factory()
            for each in fields(value)
        }
        shown = ", ".join(f"{name}={described(part)}" for name, part in pairs if part != defaults[name])
        return f"{type(value).__name__}({shown})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name!r}: {described(part)}" for name, part in value.items()) + "}"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(str, map(described, value))))}}}"
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return f"({', '.join(map(str, map(described, value)))})"
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return repr(value)


def facts_of(site: Site) -> list[str]:
    """Return the lines of a site's catalog and of what was not published."""
    catalog, lines = site.catalog, list[str]()
    for action in catalog.actions:
        lines += ["", f"# {action.id}"]
        for each in fields(action):
            default = each.default if each.default_factory is MISSING else each.default_factory()
            if (value := getattr(action, each.name)) != default and each.name not in ("id", "rehearse"):
                lines.append(f"{each.name}: {described(value)}")
        if (target := action.target) is not None:
            arrival = (
                f"{target.arrival.path} of {described(target.arrival.endpoint)}" if target.arrival else "somewhere"
            )
            lines.append(f"reached: {arrival}, plainly: {target.takes_plain_inputs}")
    lines += ["", *(described(agent) for agent in catalog.agents), *(described(page) for page in catalog.pages)]
    lines += [described(catalog.site), described(catalog.openapi), f"included: {', '.join(site.included)}"]
    lines += [f"left out: {each.method} {each.path} ({each.name}): {each.why}" for each in site.left_out]
    return [*lines, *(f"found: {finding}" for finding in site.findings)]


def review(app: Any, site: Site, path: Path, request: pytest.FixtureRequest) -> None:
    """Fail if a started application has not the catalog that a file says. --golden writes it anew; read the change."""
    with TestClient(app):
        text = "\n".join(facts_of(site)).lstrip("\n") + "\n"
    if request.config.getoption("--golden"):
        path.write_text(text)
    assert text == path.read_text()
