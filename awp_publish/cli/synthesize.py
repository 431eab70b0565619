"""The command `synthesize`: agent.json and ai-actions.json for a site that has neither (agent.json, section 14)."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.robotparser import RobotFileParser

import orjson

from awp_publish.checks import check_documents
from awp_publish.checks.urls import split
from awp_publish.cli.console import Console, write_json
from awp_publish.cli.fetching import FetchedDocument, FetchRefused, fetch_document, origin_of
from awp_publish.declare.actions import EFFECTS
from awp_publish.declare.discover.components import Components, as_object, as_objects
from awp_publish.declare.discover.openapi import read_operation
from awp_publish.documents import agent_json, awas
from awp_publish.documents.awas_manifests import ALIAS_PATH
from awp_publish.model import (
    Action,
    ActionType,
    Agent,
    Catalog,
    JsonObject,
    Location,
    Parameter,
    SiteFacts,
    Target,
    snake_case,
    utc_text,
)
from awp_publish.pages.input_types import BUTTONS
from awp_publish.problems import DeclarationError

if TYPE_CHECKING:
    from awp_publish.pages.tree import Node
from awp_publish.cli.pages import SECONDS, require_parser

MAX_BYTES: Final = 2_000_000
"""Bytes of a page or document that `synthesize` reads."""

MAX_PAGES: Final = 200

MAX_ACTIONS: Final = 100

REQUEST_SECONDS: Final = 10.0

MAX_TEXT: Final = 200

MAX_NODES: Final = 300
"""Characters of a text that is kept, and nodes that are visited for it."""

OF_OPENAPI: Final = 0.9

OF_FORM: Final = 0.7

OF_LINK: Final = 0.6

OF_BOUND_FORM: Final = 0.4
"""Confidence in an action from an OpenAPI document, a form, a link that was followed, or a form with a token."""

OPENAPI_PATHS: Final = ("/openapi.json", "/api/openapi.json", "/swagger.json")

AGENT: Final = "awp-publish"

_TOKEN: Final = re.compile(r"csrf|xsrf|token|nonce|authenticity|captcha|__viewstate|__eventvalidation", re.IGNORECASE)

_TYPES: Final[Mapping[str, JsonObject]] = {
    "number": {"type": "number"},
    "range": {"type": "number"},
    "email": {"type": "string", "format": "email"},
    "url": {"type": "string", "format": "uri"},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "time"},
    "password": {"type": "string", "format": "password", "writeOnly": True},
    "file": {"type": "string", "contentEncoding": "base64"},
}

_CONTROLS: Final = ("input", "select", "textarea", "button")

_SEARCHING: Final = frozenset(("q", "s", "query", "search", "keyword", "keywords", "term"))


_FILES: Final = re.compile(r"\.(?:css|js|mjs|png|jpe?g|gif|svg|webp|ico|pdf|zip|gz|xml|txt|json|woff2?|mp[34])$", re.I)

_LEAVING: Final = re.compile(r"(?:log|sign)[-_]?(?:out|off)|delete|remove|unsubscribe", re.IGNORECASE)


#
# Only what was seen is written: forms on pages, operations of an OpenAPI document, links between pages. It is marked as
# synthetic, with a confidence: higher for a described operation than for a form that was never sent, and lower for a
# form with a token of its page. Only pages are requested, with GET, and only as robots.txt allows.
@dataclass(frozen=True, slots=True)
class Seen:
    """An action, where it was seen, and its confidence. `bound` are hidden fields that only the page can fill in."""

    action: Action
    at: str
    confidence: float
    origin: str
    bound: tuple[str, ...] = ()


@dataclass
class InspectedSite:
    """The observations about a site."""

    url: str
    title: str = ""
    description: str = ""
    pages: dict[str, str] = field(default_factory=dict)
    """The titles of pages, by address."""
    seen: list[Seen] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    openapi_addresses: list[str] = field(default_factory=list)

    def add(self, seen: Seen) -> None:
        """Add an action under a unique id. The same request is only added once."""
        target = seen.action.target
        for one in self.seen:
            other = one.action.target
            if target is not None and other is not None and (target.method, target.path) == (other.method, other.path):
                names = seen.action.inputs.get("properties")
                if seen.origin != "form" or one.origin != "form" or names == one.action.inputs.get("properties"):
                    return
        if len(self.seen) >= MAX_ACTIONS:
            self.left_out.append((seen.at, f"{seen.action.id}: there are already {MAX_ACTIONS} actions"))
            return
        taken = {seen.action.id for seen in self.seen}
        number, unique = 2, seen.action.id
        while unique in taken:
            unique, number = f"{seen.action.id}_{number}", number + 1
        self.seen.append(replace(seen, action=replace(seen.action, id=unique, agent_id=unique)))


def synthesize(
    console: Console, url: str, out: Path | None, *, max_pages: int, allow_private: bool, anyway: bool
) -> int:
    """Read a site and write its documents below `out`, or print both. Returns 1 if there is nothing to write.

    Raises FetchRefused if the site cannot be read, DeclarationError for wrong options.
    """
    if not 1 <= max_pages <= MAX_PAGES:
        raise DeclarationError("--max-pages", f"must be between 1 and {MAX_PAGES}.")
    require_parser()
    if "://" not in url:
        url = f"https://{url}"
    deadline = time.monotonic() + SECONDS

    def get(address: str, accept: str) -> FetchedDocument:
        left = deadline - time.monotonic()
        if left <= 0:
            raise FetchRefused(f"The site could not be read within {SECONDS:g} seconds.")
        return fetch_document(
            address,
            max_bytes=MAX_BYTES,
            allow_private=allow_private,
            seconds=min(REQUEST_SECONDS, left),
            accept=accept,
            stay=True,
        )

    own = []
    for address in () if anyway else (urljoin(url, path) for path in (agent_json.PATH, awas.PATH, ALIAS_PATH)):
        try:
            document = orjson.loads(get(address, "application/json").body)
        except (FetchRefused, ValueError):
            continue
        # A synthetic file is by another intermediary, not by the site.
        if isinstance(document, dict) and "actions" in document and document.get("source") != "synthetic":
            own.append(address)
    if own:
        console.say(f"{own[0]} is the site's own document, which agents read first. Use --anyway to ignore it.")
        console.json({"own": own})
        return 1
    site = read_site(console, get, url, max_pages)
    left_out = [{"at": at, "why": why} for at, why in site.left_out]
    if not site.seen:
        console.say(f"{url}: no form, link or OpenAPI operation could be turned into an action.")
        console.json({"pages": list(site.pages), "left_out": left_out})
        return 1
    documents = render_documents(site)
    for finding in check_documents({path: orjson.dumps(document) for path, document in documents.items()}):
        if finding.level == "error":
            raise DeclarationError(url, "would have documents that are not valid.", str(finding))
    if out is not None:
        for path, document in documents.items():
            file = out / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
            console.say(str(file))
        console.table(
            ("action", "request", "#confidence", "seen at"),
            (
                (seen.action.id, f"{target.method} {target.path}", f"{seen.confidence:.2f}", seen.at)
                for seen in site.seen
                if (target := seen.action.target) is not None
            ),
        )
        console.say(*(f"left    {at}: {why}" for at, why in site.left_out))
        console.say(f"{len(site.pages)} pages, {len(site.seen)} actions. Read them before you publish them.")
    report = {"documents": documents, "pages": list(site.pages), "left_out": left_out}
    if out is None:
        write_json(report)
    else:
        console.json(report | {"files": [str(out / path.lstrip("/")) for path in documents]})
    return 0


def read_site(console: Console, get: Callable[[str, str], FetchedDocument], url: str, max_pages: int) -> InspectedSite:
    """Read pages, breadth first from the given one, then the OpenAPI document."""
    from awp_publish.pages.attributes import base_of
    from awp_publish.pages.selectolax import parse
    from awp_publish.pages.tree import read_title

    robots = RobotFileParser()
    try:
        robots.parse(get(urljoin(url, "/robots.txt"), "text/plain").body.decode("utf-8", "replace").splitlines())
    except FetchRefused:
        robots.parse([])
    first = get(url, "text/html")
    if "html" not in first.media_type:
        raise DeclarationError(
            url, f"is {first.media_type or 'of unknown type'}, not HTML.", "Name a page of the site."
        )
    site = InspectedSite(url=first.url)
    waiting, known = [first.url], {urldefrag(first.url)[0]}
    fetched: FetchedDocument | None = first
    linked: dict[str, str] = {}

    def walk() -> Iterator[str]:
        while waiting and len(site.pages) < max_pages:
            yield waiting.pop(0)

    for address in console.progress(walk(), "Reading pages", max_pages):
        if fetched is None:
            if not robots.can_fetch(AGENT, address):
                site.left_out.append((address, "robots.txt does not allow it"))
                continue
            try:
                fetched = get(address, "text/html")
            except FetchRefused as error:
                site.left_out.append((address, str(error)))
                continue
            if "html" not in fetched.media_type:
                fetched = None
                continue
        page, fetched = fetched, None
        tree = parse(page.body, page.charset or None)
        title = _short(read_title(tree))
        site.pages[page.url] = title
        base = base_of(tree, page.url) or page.url
        attributes_of_metas = (meta.attributes for meta in tree.tagged("meta"))
        metas = {
            (meta.get("name") or meta.get("property") or "").lower(): meta.get("content", "")
            for meta in attributes_of_metas
        }
        if len(site.pages) == 1:
            site.title = _short(metas.get("og:site_name") or title)
            site.description = _short(metas.get("description") or metas.get("og:description") or "")
        for link in tree.tagged("link"):
            rel, href = link.attributes.get("rel", "").lower().split(), link.attributes.get("href", "")
            if "service-desc" in rel and href:
                site.openapi_addresses.append(urljoin(base, href))
        labels = {
            label.attributes.get("for"): _words(label) for label in tree.tagged("label") if label.attributes.get("for")
        }
        associated: dict[str, list[Node]] = {}  # controls that name their form, which need not contain them
        for tag in _CONTROLS:
            for control in tree.tagged(tag):
                if name := control.attributes.get("form"):
                    associated.setdefault(name, []).append(control)
        for form in tree.tagged("form"):
            seen = _of_form(form, labels, associated, page.url, base, title)
            if isinstance(seen, str):
                site.left_out.append((page.url, seen))
            else:
                site.add(seen)
        if address in linked:  # the target of a link, which answered
            path = urlsplit(page.url).path or "/"
            name = title or linked[address] or path
            action = Action(
                id=f"open_{_id_of(path, 'page')}",
                agent_id="",
                name=name,
                description=f'Open the page "{name}".',
                inputs={"type": "object", "properties": {}},
                target=Target("GET", _escaped(path)),
                type="navigation",
                effect="read",
                outputs={"type": "string", "contentMediaType": "text/html"},
            )
            site.add(Seen(action, page.url, OF_LINK, "link"))
        for link in tree.tagged("a"):
            attributes = link.attributes
            href = attributes.get("href", "").strip()
            if not href or "download" in attributes or "nofollow" in attributes.get("rel", "").lower().split():
                continue
            try:
                there = urldefrag(urljoin(base, href))[0]
                parts = urlsplit(there)
            except ValueError:
                continue
            if parts.scheme not in ("http", "https") or parts.query or _FILES.search(parts.path):
                continue
            if there not in known and _is_here(there, site.url):
                known.add(there)
                if _LEAVING.search(parts.path):
                    site.left_out.append((there, "it may do something when it is opened"))
                    continue
                waiting.append(there)
                linked[there] = _words(link)
        tree.unlink()
    addresses = [*site.openapi_addresses, *(urljoin(site.url, path) for path in OPENAPI_PATHS)]
    for address in dict.fromkeys(addresses):
        if not _is_here(address, site.url):
            site.left_out.append((address, "it is on another site"))
        elif _read_openapi(site, get, address):
            break
    site.seen.sort(key=lambda seen: -seen.confidence)
    return site


def _is_here(address: str, home: str) -> bool:
    one, other = split(address), split(home)
    return one is not None and other is not None and origin_of(one) == origin_of(other)


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= MAX_TEXT else f"{words[: MAX_TEXT - 3].rstrip()}..."


def _words(node: "Node") -> str:
    """Return the text below a node, as far as it is among the first of its nodes."""
    pieces: list[str] = []
    waiting = [node]
    for _ in range(MAX_NODES):
        if not waiting:
            break
        one = waiting.pop()
        if one.tag in ("script", "style", "template"):
            continue
        if one.text:
            pieces.append(one.text)
        waiting.extend(reversed(one.children))
    return _short(" ".join(pieces))


def _below(node: "Node") -> Iterator["Node"]:
    waiting = list(reversed(node.children))
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(one.children))


def _of_form(
    form: "Node",
    labels: Mapping[str | None, str],
    associated: dict[str, list["Node"]],
    url: str,
    base: str,
    title: str,
) -> "Seen | str":
    """Return the action of a form, or why there is none. Takes its controls out of the `associated` ones."""
    given = form.attributes
    try:
        there = urljoin(base, given["action"].strip()) if given.get("action", "").strip() else url
        parts = urlsplit(there)
    except ValueError:
        return "a form has no usable address"
    method = given.get("method", "get").strip().upper()
    if method not in ("GET", "POST", ""):
        return f"a form with the method {_short(method).lower()} sends nothing"
    method = method or "GET"
    if not _is_here(there, url):
        return f"a form sends to another site: {parts.netloc[:80]}"
    controls = [node for node in _below(form) if node.tag in _CONTROLS]
    inside = set(map(id, controls))
    controls += [control for control in associated.pop(given.get("id", ""), ()) if id(control) not in inside]
    properties: dict[str, dict[str, object]] = {}
    required: list[str] = []
    bound: list[str] = []
    buttons: list[str] = []
    has_file = False
    for control in controls:
        attributes = control.attributes
        name = attributes.get("name", "")
        kind = attributes.get("type", "submit" if control.tag == "button" else "text").strip().lower()
        if control.tag == "button" or kind in BUTTONS:
            if kind in ("submit", "image"):
                buttons.append(_words(control) if control.tag == "button" else attributes.get("value", ""))
            continue
        if not name or "disabled" in attributes:
            continue
        if kind == "hidden":
            if _TOKEN.search(name):
                bound.append(name)
                continue
        elif "required" in attributes and name not in required:
            required.append(name)
        schema = _schema_of(control, kind, labels)
        has_file = has_file or kind == "file"
        before = properties.get(name)
        if before is not None and kind == "radio":
            values = before.setdefault("enum", [])
            if isinstance(values, list):
                values.append(attributes.get("value", "on"))
        elif before is None:
            properties[name] = schema
    if "search" in given.get("role", "").lower() or given.get("action", "").rstrip("/").endswith("search"):
        kind_of: ActionType = "search"
    else:
        searches = any(name.lower() in _SEARCHING for name in properties)
        kind_of = "form_submission" if method == "POST" else "search" if searches else "filter"
    legends = (_words(node) for node in _below(form) if node.tag in ("legend", "h1", "h2", "h3"))
    named = given.get("aria-label") or next((button for button in buttons if button.strip()), "") or next(legends, "")
    label = _short(named) or (kind_of.replace("_", " ").capitalize())
    where = f' on the page "{title}"' if title else ""
    path = parts.path or "/"
    content_type = None
    if method == "POST":
        content_type = "multipart/form-data" if has_file else "application/x-www-form-urlencoded"
    place: Location = "query" if method == "GET" else "form"
    parameters = tuple(
        Parameter(name, "file" if schema.get("contentEncoding") == "base64" else place, name)
        for name, schema in properties.items()
    )
    action = Action(
        id=_id_of(label if label.isascii() else path, path),
        agent_id="",
        name=label,
        description=f"{label}: the form{where}.",
        inputs={"type": "object", "properties": properties, **({"required": required} if required else {})},
        outputs={},
        target=Target(method, _escaped(path), parameters, content_type),
        type=kind_of,
        effect="read" if method == "GET" else "write",
        selector=f"#{given['id']}" if re.fullmatch(r"[A-Za-z][\w-]*", given.get("id", "")) else None,
        page=urlsplit(url).path or "/",
    )
    return Seen(action, url, OF_BOUND_FORM if bound else OF_FORM, "form", tuple(dict.fromkeys(bound)))


def _schema_of(control: "Node", kind: str, labels: Mapping[str | None, str]) -> dict[str, object]:
    """Return the schema of one control, with only what its markup says."""
    attributes = control.attributes
    above, wrapping = control.parent, ""
    while above is not None and above.tag not in ("form", "body", "label"):
        above = above.parent
    if above is not None and above.tag == "label":
        wrapping = _words(above)
    label = (
        labels.get(attributes.get("id")) or wrapping or attributes.get("aria-label") or attributes.get("placeholder")
    )
    schema: dict[str, object] = dict(_TYPES.get(kind, {"type": "string"}))
    if control.tag == "select":
        options = [node for node in _below(control) if node.tag == "option" and "disabled" not in node.attributes]
        values = [option.attributes.get("value", _words(option)) for option in options]
        chosen = list(dict.fromkeys(value for value in values if value))[:200]
        schema = {"type": "string", **({"enum": chosen} if chosen else {})}
        if "multiple" in attributes:
            schema = {"type": "array", "items": schema}
        words = [(value, _words(option)) for value, option in zip(values, options, strict=True) if value]
        meanings = ", ".join(f"{value}: {text}" for value, text in words[:20] if text and text != value)
        label = f"{label or ''}{' (' if label else ''}{meanings}{')' if label else ''}" if meanings else label
    elif kind in ("radio", "checkbox"):
        schema = {"type": "string", "enum": [attributes.get("value", "on")]}
    elif kind == "hidden" and attributes.get("value"):
        schema["default"] = attributes["value"][:MAX_TEXT]
    for name, keyword in (("minlength", "minLength"), ("maxlength", "maxLength")):
        if schema.get("type") == "string" and attributes.get(name, "").isdecimal() and len(attributes[name]) < 10:
            schema[keyword] = int(attributes[name])
    for name, keyword in (("min", "minimum"), ("max", "maximum")):
        if schema.get("type") == "number" and re.fullmatch(r"-?\d{1,15}(?:\.\d{1,9})?", attributes.get(name, "")):
            number = float(attributes[name])
            schema[keyword] = int(number) if number.is_integer() else number
    if label and _short(label):
        schema["description"] = _short(label)
    return schema


def _read_openapi(site: InspectedSite, get: Callable[[str, str], FetchedDocument], address: str) -> bool:
    """Add the operations of an OpenAPI document. Returns whether there is one."""
    try:
        document = orjson.loads(get(address, "application/json").body)
    except (FetchRefused, ValueError):
        return False
    if not isinstance(document, dict) or not str(document.get("openapi", "")).startswith("3."):
        return False
    servers = as_objects(document.get("servers"))
    base = urljoin(address, str(servers[0].get("url", "/"))) if servers else urljoin(address, "/")
    if not _is_here(base, site.url):
        site.left_out.append((address, f"its server is another site: {base[:120]}"))
        return True
    prefix = urlsplit(base).path.rstrip("/")
    components = Components(document)
    for path, item in as_object(document.get("paths")).items():
        for method in ("get", "post", "put", "patch", "delete"):
            operation = as_object(as_object(item).get(method))
            if not operation or operation.get("deprecated") is True or not str(path).startswith("/"):
                continue
            shared = as_objects(as_object(item).get("parameters"))
            merged = {**operation, "parameters": [*shared, *as_objects(operation.get("parameters"))]}
            try:
                found = read_operation(merged, components, f"{prefix}{path}", document.get("security"))
            except (ValueError, KeyError, TypeError, AttributeError, DeclarationError) as error:
                site.left_out.append((address, f"{method.upper()} {path} cannot be read: {error}"))
                continue
            words = _short(found.description or found.summary or f"{method.upper()} {path}")
            action = Action(
                id=_id_of(found.operation_id or f"{method}_{path}", "operation"),
                agent_id="",
                name=_short(found.summary or found.operation_id or f"{method.upper()} {path}"),
                description=words,
                inputs=found.inputs,
                outputs=found.outputs or {},
                target=Target(method.upper(), f"{prefix}{path}", found.parameters, found.content_type),
                type="data_retrieval" if method == "get" else "state_change",
                effect=EFFECTS[method.upper()],
                auth_required=found.auth_required,
                route_authenticates=found.auth_required,
                success_status=found.success_status,
            )
            site.add(Seen(action, address, OF_OPENAPI, "openapi"))
    return True


def _id_of(words: str, otherwise: str) -> str:
    name = next(filter(None, (snake_case(text)[:48].strip("_") for text in (words, otherwise))), "page")
    return name if name[0].isalpha() else f"do_{name}"


def _escaped(path: str) -> str:
    """A path that holds no placeholder: braces are those of the address itself."""
    return path.replace("{", "%7B").replace("}", "%7D")


def render_documents(site: InspectedSite) -> dict[str, dict[str, object]]:
    """Both documents by path, as the protocols of a site of ours would write them, without what was not seen."""
    parts = urlsplit(site.url)
    domain = parts.netloc
    actions = tuple(seen.action for seen in site.seen)
    facts = SiteFacts(name=site.title or domain, description=site.description or site.title or domain)
    agents = tuple(
        Agent(id=action.id, name=action.name, description=action.description, operations={"default": action.id})
        for action in actions
    )
    catalog = Catalog(url=f"{parts.scheme}://{parts.netloc}", site=facts, actions=actions, agents=agents)
    now = utc_text(datetime.now(UTC), "seconds")
    marks: dict[str, object] = {
        "source": "synthetic",
        "generated_by": AGENT,
        "confidence": round(min(seen.confidence for seen in site.seen), 2),
        "last_verified": now,
    }
    evidence = {seen.action.id: seen for seen in site.seen}
    documents = {agent_json.PATH: agent_json.render(catalog), awas.PATH: awas.render(catalog)}
    for path, document in documents.items():
        # How this site refuses, what it can do besides, and how it is, was not seen.
        for member in ("errors", "agent_status", "capabilities", "$schema"):
            document.pop(member, None)
        if path == agent_json.PATH:
            document["errors"] = {}
        described = document["actions"]
        for entry in described if isinstance(described, list) else ():
            seen = evidence[str(entry["id"])]
            entry.pop("conformanceLevel", None)
            entry["x-source"] = seen.origin
            entry["x-seen-at"] = seen.at
            entry["x-confidence"] = seen.confidence
            if seen.bound:
                entry["x-needs-from-page"] = list(seen.bound)
        (first, version), *rest = document.items()
        documents[path] = {first: version, **marks, **dict(rest)}  # it says at once what it is
    return documents
