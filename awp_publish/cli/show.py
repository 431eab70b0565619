"""The commands `show` and `export`."""

from pathlib import Path, PurePosixPath

from awp_publish.cli.application import CDN_HEADERS, Application, Published
from awp_publish.cli.console import Console, write
from awp_publish.model import Action
from awp_publish.problems import DeclarationError


def show(console: Console, target: str, path: str | None, *, included: bool, tokens: bool) -> int:
    """Print what is published, or one of the documents. Returns 1 if there is no such document."""
    application = Application(target)
    if path is not None:
        status, one = application.read(lambda: (path,))[path]
        text, kind = one.body.decode("utf-8", "replace"), one.media_type.partition(";")[0]
        if console.as_json and not kind.endswith("json"):
            console.json({"path": path, "status": status, "media_type": kind, "text": text})
        else:
            write(text, is_block=True)
        return int(status != 200)
    if tokens:  # documents with the same bytes are counted once
        by_body: dict[bytes, list[Published]] = {}
        for one in application.documents.values():
            by_body.setdefault(one.body, []).append(one)
        rows = sorted(by_body.values(), key=lambda group: len(group[0].body), reverse=True)
        counts = ((group[0].tokens, len(group[0].body), " = ".join(one.path for one in group)) for group in rows)
        console.table(("#tokens", "#bytes", "document"), counts)
        facts = [facts_of(group[0]) | {"also_at": [one.path for one in group[1:]]} for group in rows]
        console.json({"documents": facts, "bytes_per_token": 4})
        return 0
    site = application.site
    catalog = site.catalog
    left_out = [f"left    {one.method} {one.path}  {one.name}: {one.why}" for one in site.left_out]
    if included:
        taken = {one.id: one.target for one in catalog.actions if one.id in site.included and one.target is not None}
        pages = [page for page in catalog.pages if page.path in site.included]
        console.say(*(f"action  {target.method} {target.path}  {name}" for name, target in taken.items()))
        console.say(*(f"page    GET {page.path}  {page.title}" for page in pages), *left_out)
        known = {"actions": list(taken), "pages": [page.path for page in pages]}
        console.json({**known, "left_out": [one._asdict() for one in site.left_out]})
        return 0

    def policy(action: Action) -> str:
        limit = action.rate_limit or catalog.site.rate_limit
        words = (
            f"at most {limit}" if limit is not None else "",
            "callers are known" if action.auth_required else "",
            f"scopes {', '.join(action.scopes)}" if action.scopes else "",
            "a person confirms" if action.needs_confirmation else "",
            f"after {', '.join(action.requires)}" if action.requires else "",
            "in the background" if action.is_background else "",
        )
        return "; ".join(word for word in words if word) or "open"

    console.heading("Documents")
    console.say(*application.documents)
    console.heading("Actions")
    actions = [
        {
            "id": one.id,
            "method": catalog.endpoint_of(one)[0],
            "path": catalog.endpoint_of(one)[1],
            "effect": one.effect,
            "policy": policy(one),
            "description": one.description,
        }
        for one in catalog.actions
    ]
    told = ((one["id"], f"{one['method']} {one['path']}", *list(one.values())[3:]) for one in actions)
    console.table(("action", "request", "effect", "policy", "description"), told)
    console.heading("Left out")
    console.say(*left_out)
    documents = [facts_of(one) for one in application.documents.values()]
    console.json({"documents": documents, "actions": actions, "left_out": [one._asdict() for one in site.left_out]})
    return 0


def facts_of(one: Published) -> dict[str, object]:
    return {"path": one.path, "media_type": one.media_type, "bytes": len(one.body), "tokens": one.tokens}


def export(console: Console, target: str, folder: Path) -> int:
    """Write all documents below a folder, and their headers to its file `_headers`, for a CDN of static files.

    Raises DeclarationError if a path would be both a file and a folder.
    """
    files = {PurePosixPath(one.path.lstrip("/")): one for one in Application(target).documents.values()}
    for file in files:
        if above := next((one for one in file.parents if one in files), None):
            raise DeclarationError(f"/{above}", f"would be both a file and the folder of /{file}.", "Move one of them.")
    written: list[str] = []
    lines: list[str] = []
    for file, one in console.progress(files.items(), "Writing", len(files)):
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one.body)
        written.append(str(path))
        kept = [f"  {name.title()}: {value}" for name, value in one.headers if name not in CDN_HEADERS]
        lines += [one.path, *kept, ""]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_headers").write_text("\n".join(lines), encoding="utf-8")
    written.append(str(folder / "_headers"))
    console.say(*written)
    console.json({"files": written})
    return 0
