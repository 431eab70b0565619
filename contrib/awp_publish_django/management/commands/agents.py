"""`manage.py agents check | show | export | worker`: what the project publishes, and its jobs, without a server."""

import asyncio
from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from awp_publish import DeclarationError
from awp_publish.checks import check_documents
from awp_publish.serve.jobs import serve_jobs
from awp_publish.serve.lifespan import StartFailed
from awp_publish_django.publication import Publication, get_publication


class Command(BaseCommand):
    """The documents of this process's publication."""

    help = "Check, show or export what the site publishes to agents; run its background jobs."
    requires_system_checks = ("agents",)

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("check", help="check the documents against their specifications")
        show = verbs.add_parser("show", help="print one document, or list the paths of all")
        show.add_argument("path", nargs="?", help="the document's path")
        export = verbs.add_parser("export", help="write all documents below a folder, for a server of static files")
        export.add_argument("folder", type=Path)
        verbs.add_parser("worker", help="run background jobs until told to stop (SIGTERM, SIGINT)")

    def handle(self, *, verb: str, **options: object) -> None:
        publication = get_publication()
        if verb == "check":
            self._check(publication)
        elif verb == "show":
            self._show(publication, options["path"])
        elif verb == "worker":
            self._work(publication)
        else:
            self._export(publication, Path(str(options["folder"])))

    def _work(self, publication: Publication) -> None:
        try:
            asyncio.run(serve_jobs(publication.publisher))
        except (DeclarationError, StartFailed) as error:
            raise CommandError(str(error)) from error

    def _check(self, publication: Publication) -> None:
        findings = check_documents(publication.documents())
        for finding in findings:
            self.stdout.write(str(finding))
        errors = sum(finding.level == "error" for finding in findings)
        told = f"{len(findings)} findings, {errors} of them errors"
        if errors:
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
