"""`manage.py agents VERB`: the verbs of `awp-publish`, about this project, and `list`. No server is needed."""

import json
import logging
from argparse import ArgumentParser, Namespace
from contextlib import nullcontext, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from typing import Any, Final, TextIO, cast
from urllib.parse import urlsplit

from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser, SystemCheckError
from django.test import Client

from awp_publish import DeclarationError
from awp_publish.cli import FAILURES, add_commands, describe_failure, run, take_rest
from awp_publish.cli.call import read_inputs
from awp_publish.cli.console import Console, is_asking, visible, write
from awp_publish.cli.show import describe_left_out
from awp_publish_django.checks import check_agents
from awp_publish_django.publication import Publication, get_publication

FINDING: Final = "awp_publish.W006"
PROJECT: Final = "awp_publish_django.asgi:publisher"


OF_DJANGO: Final = ("--settings", "--pythonpath")
"""Options of all commands that have a value. Django has read them before a command is made."""


def _failure(text: str, code: int = 1) -> CommandError:
    return CommandError(visible(text, is_block=True), returncode=code)


class Parser(CommandParser):
    """Takes inputs behind options, as `awp-publish` does."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Namespace:  # type: ignore[override]
        """Read a command line, or end the process."""
        options: Namespace
        words = list(args or ())
        ahead: list[str] = []
        for name in OF_DJANGO:  # those of every command, which may stand behind the verb too
            while name in words[1:]:
                at = words.index(name, 1)
                ahead += words[at : at + 2]
                del words[at : at + 2]
            ahead += [word for word in words[1:] if word.startswith(f"{name}=")]
            words = [word for at, word in enumerate(words) if at == 0 or not word.startswith(f"{name}=")]
        options, rest = self.parse_known_args([*ahead, *words], namespace)
        if unknown := take_rest(options, rest):
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options


class Command(BaseCommand):
    """The verbs of `awp-publish`, with this process's publication."""

    help = "List, call, check, show or export what the site publishes to agents; run its background jobs."
    requires_system_checks = ("agents",)

    def check(self, *_: object, **__: object) -> None:
        """Raise SystemCheckError for errors of ours. Warnings are for `manage.py check` and `agents check`."""
        errors = [message for message in self._messages() if message.is_serious()]
        if errors:
            raise SystemCheckError("\n".join(map(str, errors)))

    def _messages(self) -> list[CheckMessage]:
        return [message for message in check_agents() if not message.is_silenced()]

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.__class__ = Parser  # Django makes one of its own, and asks nobody which
        return parser

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="command", metavar="VERB", required=True)
        verbs.add_parser("list", help="list actions and pages, and what site.include() left out and why")
        add_commands(verbs, PROJECT)
        verbs.choices["call"].add_argument("--user", help="the name of the user who calls, as if signed in")

    def handle(self, **arguments: Any) -> None:
        options = Namespace(**arguments)
        try:
            publication = get_publication()
        except (DeclarationError, ImproperlyConfigured) as error:
            raise _failure(str(error)) from error
        if options.command == "check":  # which tells findings itself
            for message in self._messages():
                if message.id != FINDING:
                    self.stderr.write(visible(str(message), is_block=True))
        if options.command == "list":
            self._list(publication)
        elif options.command == "call" and options.door in (None, "woa") and publication.site.catalog.door("woa"):
            self._call(publication, options)
        elif (
            options.command == "show"
            and options.path
            and options.path not in (documents := publication.documents(with_fallbacks=True))
        ):
            paths = ", ".join(documents)
            raise _failure(f"{options.path} is not published. There are: {paths}.")
        else:
            self._run(publication, options)

    def _run(self, publication: Publication, options: Namespace) -> None:
        """Do as `awp-publish` does. What it says on standard error is the CommandError, unless somebody is asked."""
        if options.command == "call" and options.user is not None:
            options.header.append(f"Cookie: {self._client(publication, options).cookies.output(header='', sep=';')}")
        stderr, self.stdout.ending = StringIO(), ""
        log = logging.getLogger("django.request")  # which warns of documents that there may be, and are not
        level = log.level
        log.setLevel(logging.ERROR)
        try:
            with (
                redirect_stdout(cast(TextIO, self.stdout)),
                redirect_stderr(stderr) if not is_asking() else nullcontext(),
            ):
                console = Console(as_json=getattr(options, "json", False))
                code = run(console, options)
        except FAILURES as error:
            raise _failure(describe_failure(error), 2) from error
        finally:
            log.setLevel(level)
        if code:
            raise _failure(stderr.getvalue().strip() or "The command found errors.", code)

    def _say(self, text: str, *, is_block: bool = False) -> None:
        self.stdout.ending = ""
        write(text, is_block=is_block, to=cast(TextIO, self.stdout))

    def _list(self, publication: Publication) -> None:
        site, catalog = publication.site, publication.site.catalog
        for action in catalog.actions:
            way = f"{action.target.method} {action.target.path}" if action.target is not None else "AGENT -"
            line = f"{action.id}  ({action.effect}{', needs a known caller' if action.auth_required else ''})"
            self._say(f"action  {way}  {line}")
        for page in catalog.pages:
            self._say(f"page    GET {page.path}  {page.title}")
        for line in describe_left_out(site.left_out):
            self._say(line)

    def _client(self, publication: Publication, options: Namespace) -> Client:
        url = urlsplit(publication.site.catalog.url)
        client = Client(SERVER_NAME=url.hostname or "localhost", HTTP_HOST=url.netloc, raise_request_exception=False)
        if options.user is not None:
            users: Any = get_user_model()
            user = users._default_manager.filter(**{users.USERNAME_FIELD: options.user}).first()
            if user is None:
                raise _failure(f'There is no user "{options.user}".')
            client.force_login(user)
        return client

    def _call(self, publication: Publication, options: Namespace) -> None:
        catalog = publication.site.catalog
        try:
            action = catalog.action(options.action)
        except KeyError:
            ids = ", ".join(action.id for action in catalog.actions) or "none"
            raise _failure(f'There is no action "{options.action}". There are: {ids}.') from None
        try:
            inputs = read_inputs(action.inputs, options.given, options.input)
        except DeclarationError as error:
            raise _failure(str(error)) from error
        client = self._client(publication, options)
        headers = {
            name.strip(): value.strip() for name, _, value in (header.partition(":") for header in options.header)
        }
        if options.token is not None:
            headers["Authorization"] = f"Bearer {options.token}"
        if options.key is not None:
            headers["Idempotency-Key"] = options.key
        document: Any = None
        for confirmation in ("", "asked for"):
            if confirmation:
                headers["AWP-Confirmation"] = document["confirmation"]["token"]
            answer = client.post(
                catalog.invoke_path_of(action),
                json.dumps({"operation": action.operation, "input": inputs}),
                content_type="application/json",
                secure=catalog.url.startswith("https:"),
                headers=headers,
            )
            body = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]
            text = body.decode("utf-8", "replace")
            with suppress(ValueError):
                document = json.loads(text)
                text = json.dumps(document, indent=2, ensure_ascii=False)
            if not (options.yes and isinstance(document, dict) and document.get("code") == "CONFIRMATION_REQUIRED"):
                break
        if answer.status_code >= 400:
            raise _failure(f"{answer.status_code}: {text}")
        self._say(text, is_block=True)
