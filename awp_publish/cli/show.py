"""The commands `show` and `export`."""

from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from awp_publish.cli.application import CDN_HEADERS, Application, Published
from awp_publish.cli.console import Console, write
from awp_publish.model import Action, LeftOut
from awp_publish.problems import DeclarationError

ADMIN: Final = "part of the admin"
"""Words of the reason why routes of an admin panel are left out, of which there are hundreds."""


def show(console: Console, options: Namespace) -> int:
    """Print what is published, or one of the documents. Returns 1 if there is no such document."""
    application, path = Application(options.target), options.path
    if path is not None:
        path = f"/{path.lstrip('/')}"
        status, document = application.read(lambda: (path,))[path]
        text, kind = document.body.decode("utf-8", "replace"), document.media_type.partition(";")[0]
        if console.as_json and not kind.endswith("json"):
            console.json({"path": path, "status": status, "media_type": kind, "text": text})
        else:
            write(text, is_block=True)
        return int(status != 200)
    if options.tokens:  # documents with the same bytes are counted once
        by_body: dict[bytes, list[Published]] = {}
        for document in application.documents.values():
            by_body.setdefault(document.body, []).append(document)
        groups = sorted(by_body.values(), key=lambda group: len(group[0].body), reverse=True)
        counts = (
            (group[0].tokens, len(group[0].body), " = ".join(document.path for document in group)) for group in groups
        )
        console.table(("#tokens", "#bytes", "document"), counts)
        facts = [facts_of(group[0]) | {"also_at": [document.path for document in group[1:]]} for group in groups]
        console.json({"documents": facts, "bytes_per_token": 4})
        return 0
    site = application.site
    catalog = site.catalog
    left_out = describe_left_out(site.left_out)
    if options.included:
        targets = {
            action.id: action.target
            for action in catalog.actions
            if action.id in site.included and action.target is not None
        }
        pages = [page for page in catalog.pages if page.path in site.included]
        console.say(*(f"action  {target.method} {target.path}  {name}" for name, target in targets.items()))
        console.say(*(f"page    GET {page.path}  {page.title}" for page in pages), *left_out)
        published = {"actions": list(targets), "pages": [page.path for page in pages]}
        console.json({**published, "left_out": [route._asdict() for route in site.left_out]})
        return 0

    def policy(action: Action) -> str:
        limit = action.rate_limit or catalog.site.rate_limit
        words = (
            f"at most {limit}" if limit is not None else "",
            "callers authenticate" if action.auth_required else "",
            f"scopes {', '.join(action.scopes)}" if action.scopes else "",
            "a person confirms" if action.needs_confirmation else "",
            f"after {', '.join(action.requires)}" if action.requires else "",
            "in the background" if action.is_background else "",
        )
        return "; ".join(word for word in words if word) or "open"

    def request(action: Action) -> tuple[str, str]:
        if action.is_exposed_at("plain"):
            return catalog.endpoint_of(action)
        if action.target is not None:
            return action.method, action.target.path
        return "POST", catalog.invoke_path_of(action)

    console.heading("Documents")
    console.say(*application.documents)
    console.heading("Actions")
    actions = [
        {
            "id": action.id,
            "method": method,
            "path": path,
            "effect": action.effect,
            "policy": policy(action),
            "description": action.description,
        }
        for action in catalog.actions
        for method, path in [request(action)]
    ]
    rows = ((action["id"], f"{action['method']} {action['path']}", *list(action.values())[3:]) for action in actions)
    console.table(("action", "request", "effect", "policy", "description"), rows)
    console.heading("Left out")
    console.say(*left_out)
    documents = [facts_of(document) for document in application.documents.values()]
    console.json({"documents": documents, "actions": actions, "left_out": [route._asdict() for route in site.left_out]})
    return 0


def describe_left_out(routes: Iterable[LeftOut]) -> list[str]:
    """Return a line for each path and reason, and one for all routes below the first part of an admin's path."""
    groups: dict[tuple[str, str], list[LeftOut]] = {}
    for route in routes:
        where = f"/{route.path.split('/')[1]}/" if ADMIN in route.why else route.path
        groups.setdefault((where, route.why), []).append(route)
    lines = []
    for (where, why), group in groups.items():
        methods = " ".join(dict.fromkeys(route.method for route in group))
        count = len({route.path for route in group})
        lines.append(
            f"left    {count} routes below {where}: {why}"
            if ADMIN in why
            else f"left    {methods} {where}  {group[0].name}: {why}"
        )
    return lines


def facts_of(document: Published) -> dict[str, object]:
    return {
        "path": document.path,
        "media_type": document.media_type,
        "bytes": len(document.body),
        "tokens": document.tokens,
    }


def export(console: Console, options: Namespace) -> int:
    """Write all documents below a folder, and their headers to its file `_headers`, for a CDN of static files.

    Raises DeclarationError if a path would be both a file and a folder.
    """
    folder: Path = options.folder
    documents = Application(options.target).documents.values()
    files = {PurePosixPath(document.path.lstrip("/")): document for document in documents}
    for file in files:
        if above := next((parent for parent in file.parents if parent in files), None):
            raise DeclarationError(f"/{above}", f"would be both a file and the folder of /{file}.", "Move one of them.")
    written: list[str] = []
    lines: list[str] = []
    for file, document in console.progress(files.items(), "Writing", len(files)):
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(document.body)
        written.append(str(path))
        header_lines = [f"  {name.title()}: {value}" for name, value in document.headers if name not in CDN_HEADERS]
        lines += [document.path, *header_lines, ""]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_headers").write_text("\n".join(lines), encoding="utf-8")
    written.append(str(folder / "_headers"))
    console.say(*written)
    console.json({"files": written})
    return 0
