"""`manage.py agents list | call | check | show | approve | export | worker`: what is published, without a server."""

import asyncio
import json
from argparse import ArgumentParser
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.test import Client

from awp_publish import DeclarationError
from awp_publish.checks import Finding, check_documents
from awp_publish.checks.descriptions import judge_descriptions, tools_of
from awp_publish.commands.approving import approve_of
from awp_publish.commands.console import Console
from awp_publish.discover.openapi import as_object
from awp_publish.model import LeftOut
from awp_publish.serve.drift import Drift, check_pages
from awp_publish.serve.jobs import serve_jobs
from awp_publish.serve.lifespan import StartFailed
from awp_publish_django.publication import Publication, get_publication


class Command(BaseCommand):
    """The documents of this process's publication."""

    help = "List, call, check, show or export what the site publishes to agents; run its background jobs."
    requires_system_checks = ("agents",)

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list", help="list actions and pages, and what site.include() left out and why")
        call = verbs.add_parser("call", help="call an action as an agent would, through the whole project")
        call.add_argument("action", help="the action's id")
        call.add_argument("given", nargs="*", metavar="name=value", help="its inputs, as text or JSON")
        call.add_argument("--input", default="{}", help="its inputs as one JSON object")
        call.add_argument("--user", help="the name of the user who calls, as if signed in")
        call.add_argument("--header", action="append", default=[], metavar="'Name: value'", help="a header to send")
        check = verbs.add_parser("check", help="check the documents against their specifications")
        check.add_argument(
            "--pages", action="store_true", help="render the declared pages, and hold them to actions.json"
        )
        check.add_argument("--as-model", action="store_true", help="judge descriptions and names as a model reads them")
        show = verbs.add_parser("show", help="print one document, or list the paths of all")
        show.add_argument("path", nargs="?", help="the document's path")
        show.add_argument("--tokens", action="store_true", help="what each document costs its reader")
        export = verbs.add_parser("export", help="write all documents below a folder, for a server of static files")
        export.add_argument("folder", type=Path)
        approval = verbs.add_parser("approve", help="list what waits for the owner's approval, or approve it")
        approval.add_argument("action", nargs="*", help="approve these as they are now; without any, list what waits")
        approval.add_argument("--all", action="store_true", help="approve all that waits")
        verbs.add_parser("worker", help="run background jobs until told to stop (SIGTERM, SIGINT)")

    def handle(self, *, verb: str, **options: object) -> None:
        try:
            publication = get_publication()
        except (DeclarationError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        if verb == "check":
            if options["as_model"]:
                self._check_as_model(publication)
            else:
                self._check(publication, bool(options["pages"]))
        elif verb == "list":
            self._list(publication)
        elif verb == "call":
            self._call(publication, options)
        elif verb == "show" and options["tokens"]:
            for path, body in sorted(publication.documents().items(), key=lambda pair: -len(pair[1])):
                self.stdout.write(f"{-(-len(body) // 4):6}  {len(body):7}  {path}")
        elif verb == "show":
            self._show(publication, options["path"])
        elif verb == "approve":
            self._approve(publication, cast("list[str]", options["action"]), bool(options["all"]))
        elif verb == "worker":
            self._work(publication)
        else:
            self._export(publication, Path(str(options["folder"])))

    def _approve(self, publication: Publication, names: list[str], approves_all: bool) -> None:
        try:
            waits = approve_of(Console(), publication.site, names, approves_all=approves_all)
        except DeclarationError as error:
            raise CommandError(str(error)) from error
        if waits:
            raise CommandError("Actions wait for approval.")

    def _list(self, publication: Publication) -> None:
        site, catalog = publication.site, publication.site.catalog
        for action in catalog.actions:
            way = f"{action.target.method} {action.target.path}" if action.target is not None else "AGENT -"
            told = f"{action.id}  ({action.effect}{', needs a known caller' if action.auth_required else ''})"
            self.stdout.write(f"action  {way}  {told}")
        for page in catalog.pages:
            self.stdout.write(f"page    GET {page.path}  {page.title}")
        apart: dict[tuple[str, str], list[LeftOut]] = {}  # by path, and an admin as a whole
        for one in site.left_out:
            is_admin = one.why.endswith("admin")
            apart.setdefault(
                (one.path.split("/")[1] if is_admin else one.path, one.why if is_admin else ""), []
            ).append(one)
        for (where, why), several in apart.items():
            methods = " ".join(dict.fromkeys(one.method for one in several))
            if why:
                self.stdout.write(f"left    {len({one.path for one in several})} routes below /{where}/: {why}")
            else:
                self.stdout.write(f"left    {methods} {where}  {several[0].name}: {several[0].why}")

    def _call(self, publication: Publication, options: Mapping[str, Any]) -> None:
        catalog = publication.site.catalog
        try:
            action = catalog.action(options["action"])
        except KeyError:
            known = ", ".join(one.id for one in catalog.actions) or "none"
            raise CommandError(f'There is no action "{options["action"]}". There are: {known}.') from None
        try:
            given = dict(json.loads(options["input"]))
        except (ValueError, TypeError) as error:
            raise CommandError(f"--input is no JSON object: {error}.") from error
        members = as_object(action.inputs.get("properties"))
        for pair in options["given"]:
            name, is_pair, text = pair.partition("=")
            if not is_pair:
                raise CommandError(f'Write inputs as name=value, and not "{pair}".')
            given[name] = _value_of(text, as_object(members.get(name)))
        headers = dict(pair.split(":", 1) for pair in options["header"] if ":" in pair)
        client = Client(SERVER_NAME=urlsplit(catalog.url).hostname or "localhost", raise_request_exception=False)
        if options["user"] is not None:
            users: Any = get_user_model()
            user = users._default_manager.filter(**{users.USERNAME_FIELD: options["user"]}).first()
            if user is None:
                raise CommandError(f'There is no user "{options["user"]}".')
            client.force_login(user)
        answer = client.post(
            catalog.invoke_path_of(action),
            json.dumps({"operation": action.operation, "input": given}),
            content_type="application/json",
            secure=catalog.url.startswith("https:"),
            headers={name.strip(): value.strip() for name, value in headers.items()},
        )
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]
        told = body.decode("utf-8", "replace")
        with suppress(ValueError):
            told = json.dumps(json.loads(told), indent=2, ensure_ascii=False)
        if answer.status_code >= 400:
            raise CommandError(f"{answer.status_code}: {told}")
        self.stdout.write(told)

    def _work(self, publication: Publication) -> None:
        try:
            asyncio.run(serve_jobs(publication.publisher))
        except (DeclarationError, StartFailed) as error:
            raise CommandError(str(error)) from error

    def _check(self, publication: Publication, pages: bool) -> None:
        findings: list[Finding | Drift] = [*check_documents(publication.documents())]
        if pages:
            findings += asyncio.run(check_pages(publication.publisher, lambda: publication.site.catalog))
        for finding in findings:
            self.stdout.write(str(finding))
        errors = sum(finding.level == "error" for finding in findings)
        told = f"{len(findings)} findings, {errors} of them errors"
        if errors:
            raise CommandError(told)
        self.stdout.write(told)

    def _check_as_model(self, publication: Publication) -> None:
        judged = judge_descriptions(tools_of(publication.site.catalog))
        for finding in judged.findings:
            self.stdout.write(str(finding))
        told = f"{judged.score} of 100; {len(judged.findings)} findings"
        if judged.findings:
            raise CommandError(told)
        self.stdout.write(told)

    def _show(self, publication: Publication, path: object) -> None:
        documents = publication.documents()
        if path is None:
            self.stdout.write("\n".join(documents))
            return
        if path not in documents:
            raise CommandError(f"{path} is not published. There are: {', '.join(documents)}.")
        self.stdout.write(documents[str(path)].decode("utf-8", "replace"))

    def _export(self, publication: Publication, folder: Path) -> None:
        for path, body in publication.documents().items():
            target = folder / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(body)
            self.stdout.write(str(target))


def _value_of(text: str, schema: Mapping[str, object]) -> object:
    """A value as the command line has it: text where text is wanted, else JSON if it is some."""
    if schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
