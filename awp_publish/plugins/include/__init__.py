"""Routes in bulk, and pages where none is declared."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from awp_publish.plugin import DeclaredSite, FoundRoutes, Plugin, Setup
from awp_publish.plugins.include.reasons import Inclusion, find_pages
from awp_publish.plugins.include.routes import READING
from awp_publish.plugins.include.selecting import SUBJECT, include_routes
from awp_publish.schema.options import TEXTS, check, listing

logger: Final = logging.getLogger("awp_publish")


@dataclass(frozen=True, slots=True)
class Inclusions:
    """What a site includes, in order."""

    site: DeclaredSite
    declared: list[Inclusion] = field(default_factory=list)

    def include(
        self,
        *,
        tags: Sequence[str] = (),
        paths: Sequence[str] = (),
        operations: Sequence[str] = (),
        exclude: Sequence[str] = (),
        mounts: Sequence[str] = (),
        auth_required: bool | None = None,
        rate_limit: str | None = None,
    ) -> None:
        """Publish existing routes without touching their handlers.

        A route is published if it has one of `tags`, its path matches one of `paths` (`/books/*`), or its name or
        operation id is one of `operations`; if none of the three is given, every listed route is. Routes that may not
        only read (anything but GET) are published only if `operations` names them. Routes that return HTML become
        pages. Routes of mounted applications are considered if `mounts` has the application's path. Sign-in and
        sign-out, known admin panels, static files and other formats of a route have to be named to be published.
        `exclude` lists names and paths to leave out. `auth_required` and `rate_limit` hold for each action. Afterwards
        `left_out` lists the routes that were not published, with reasons.
        """
        self.site.refuse_when_frozen(SUBJECT)
        inclusion = Inclusion(
            tags=check(SUBJECT, TEXTS, tags, "tags"),
            paths=check(SUBJECT, TEXTS, paths, "paths"),
            operations=check(SUBJECT, TEXTS, operations, "operations"),
            exclude=check(SUBJECT, TEXTS, exclude, "exclude"),
            mounts=check(SUBJECT, TEXTS, mounts, "mounts"),
            options=self.site.read_action_options(SUBJECT, {"auth_required": auth_required, "rate_limit": rate_limit}),
        )
        self.declared.append(inclusion)


def _publish(setup: Setup, found: FoundRoutes) -> None:
    inclusions: Inclusions = setup.state
    if not inclusions.declared:
        if not found.has_pages:
            found.default_pages.extend(find_pages(found.routes))
        return
    for inclusion in inclusions.declared:
        include_routes(inclusion, found)
    targets = [action.target for action in (*found.declared, *found.actions) if action.target is not None]
    for way in [*((target.method, target.path) for target in targets), *((READING, path) for path in found.pages)]:
        found.left_out.pop(way, None)
    logger.info(
        "site.include() took %d actions (%s) and %d pages (%s), and left %d routes out; "
        "awp-publish show --included module:app says which and why.",
        len(found.actions),
        listing(action.id for action in found.actions),
        len(found.pages),
        listing(found.pages),
        len(found.left_out),
    )


PLUGIN = Plugin(
    name="include",
    is_default=True,
    start=lambda setup: Inclusions(setup.site),
    declares={"include": Inclusions.include},
    publish=_publish,
)
