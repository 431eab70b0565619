"""Attributes and forms of a page, compared with the declared actions and inputs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urljoin, urlsplit

from awp_publish.maps import reading
from awp_publish.model import Catalog, JsonObject, Page
from awp_publish.plugins.actions_json.differences import Drift
from awp_publish.schema.reading import members, required_members

MARKUP: Final[Sequence[JsonObject]] = (
    {
        "id": "actions",
        "selector": "[data-awas-action], [data-ai-action]",
        "fields": {
            "awas": {"attribute": "data-awas-action"},
            "ai": {"attribute": "data-ai-action"},
            "endpoint": {"attribute": "data-ai-endpoint"},
            "method": {"attribute": "data-ai-method"},
        },
    },
    {
        "id": "params",
        "selector": "[data-awas-param], [data-ai-param]",
        "fields": {
            "awas": {"attribute": "data-awas-param"},
            "ai": {"attribute": "data-ai-param"},
            "of_awas": {
                "closest": "[data-awas-action], [data-ai-action]",
                "attribute": "data-awas-action",
            },
            "of_ai": {"closest": "[data-awas-action], [data-ai-action]", "attribute": "data-ai-action"},
        },
    },
    {
        "id": "forms",
        "selector": "form",
        "fields": {
            "action": {"attribute": "action"},
            "method": {"attribute": "method"},
            "id": {"attribute": "id"},
            "controls": {
                "selector": "input, select, textarea",
                "many": True,
                "fields": {
                    "name": {"attribute": "name"},
                    "type": {"attribute": "type"},
                    "required": {"attribute": "required"},
                    "value": {"property": "value"},
                },
            },
        },
    },
    {"id": "links", "selector": "a[href]", "fields": {"href": {"attribute": "href"}}},
)
"""What is extracted from a page: attributes of actions and inputs, forms with their controls, and links."""


def compare_attributes(catalog: Catalog, page: Page, records: Mapping[str, object]) -> Iterator[Drift]:
    """Yield attributes of actions and inputs that are not declared, or not with these addresses."""
    declared = _declared(catalog)
    actions = {action.id: action for action in catalog.actions}
    for element in reading.objects(records, "actions"):
        for style in ("awas", "ai"):
            name = element.get(style)
            if not isinstance(name, str):
                continue
            action = actions.get(name)
            if action is None:
                message = f"There is no action {name!r}."
                yield Drift.of(
                    "drift-attribute", page.path, f"data-{style}-action", message, {"attributes": dict(element)}
                )
                continue
            if page.id and name not in declared:
                message = f"The page is marked with {name}, which its declaration does not name."
                proposal = f"actions=[{', '.join(repr(action_id) for action_id in (*page.actions, name))}]"
                yield Drift.of("drift-form", page.path, f"action {name}", message, {"proposal": proposal})
            method, path = catalog.endpoint_of(action)
            endpoint = {"endpoint": catalog.prefix + path, "method": method}
            attributes = {member: element.get(member) for member in endpoint}
            if style == "ai" and any(attributes[member] not in (None, endpoint[member]) for member in endpoint):
                message = "The address or the method differs from the manifest."
                yield Drift.of(
                    "drift-attribute", page.path, f"action {name}", message, {"page": attributes, "manifest": endpoint}
                )
    for element in reading.objects(records, "params"):
        name = element.get("awas") or element.get("ai")
        owner = element.get("of_awas") or element.get("of_ai")
        action = actions.get(str(owner))
        if action is not None and name not in members(action.inputs):
            message = f"The action {owner} has no input {name!r}."
            yield Drift.of("drift-attribute", page.path, f"input {name}", message, {"attributes": dict(element)})


def compare_forms(catalog: Catalog, page: Page, url: str, records: Mapping[str, object]) -> Iterator[Drift]:
    """Yield forms of actions that are not declared, and differences between their fields and the inputs."""
    declared = _declared(catalog)
    by_route = {
        (action.target.method, catalog.prefix + action.target.path): action
        for action in catalog.actions
        if action.target is not None
    }
    for form in reading.objects(records, "forms"):
        method = str(form.get("method") or "get").upper()
        path = urlsplit(urljoin(url, str(form.get("action") or url))).path
        action = by_route.get((method, path))
        if action is None:
            continue
        controls = {
            str(control["name"]): control for control in reading.objects(form, "controls") if control.get("name")
        }
        evidence: JsonObject = {"form": {"method": method, "path": path}, "controls": list(controls.values())}
        if action.id not in page.actions and action.id in declared:
            continue  # a form that is on every page has to be declared on one only
        if action.id not in page.actions:
            selector = f"form[action='{form.get('action')}']" if form.get("action") else "form"
            places = {name: f"{selector} [name='{name}']" for name in controls}
            awas = {"selectors": places}
            proposal = f"@site.page(actions=[{action.id!r}]), @site.action({action.id!r}, awas={awas!r})"
            message = f"It has a form of the action {action.id}, which its declaration does not name."
            yield Drift.of("drift-form", page.path, f"action {action.id}", message, {"proposal": proposal, **evidence})
            continue
        properties, required = members(action.inputs), sorted(required_members(action.inputs))
        unknown = [name for name in required if name not in controls and "{" not in path]
        if unknown:
            message = f"The form has no field for {', '.join(unknown)}."
            yield Drift.of("drift-missing", page.path, f"action {action.id}", message, evidence)
        strange = [
            name for name, control in controls.items() if name not in properties and control.get("required") is not None
        ]
        if strange:
            message = f"The form requires {', '.join(strange)}, which the action does not have."
            yield Drift.of("drift-form", page.path, f"action {action.id}", message, evidence)


def _declared(catalog: Catalog) -> set[str]:
    return {name for page in catalog.pages for name in page.actions}
