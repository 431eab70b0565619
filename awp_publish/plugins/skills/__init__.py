"""Skills: instructions for a task on the site, which agents read first."""

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import Any

from awp_publish.model import Catalog
from awp_publish.plugin import DeclaredSite, Plugin, Setup
from awp_publish.plugins.skills.skills import read_skill
from awp_publish.problems import DeclarationError
from awp_publish.schema.options import ID, check


class Skills:
    """The skills that a site declares, by id: what `site.skill` was given, and the decorated function."""

    def __init__(self, site: DeclaredSite) -> None:
        self._site = site
        self.declared: dict[str, tuple[str, object, str | None, Callable[..., object] | None]] = {}

    def declare(
        self, skill_id: str, content: str | PathLike[str] | None = None, /, *, description: str | None = None
    ) -> Callable[[Any], Any]:
        """Declare a skill: instructions for a task on this site that agents read first. See docs/documents.md.

        `content` is a folder with a SKILL.md, or a text. The decorated function is returned unchanged; its docstring is
        the description of a text without one, or the text itself if there is no `content`.
        """
        if callable(skill_id):
            raise DeclarationError("site.skill", 'needs an id: write @site.skill("its_id", folder_or_text).')
        subject = f'skill "{skill_id}"'
        self._site.refuse_when_frozen(subject)
        check(subject, ID, skill_id, "id")
        if skill_id in self.declared:
            raise DeclarationError(subject, "is declared twice.", "Give one of the two another id.")
        if not (content is None or isinstance(content, (str, PathLike))):
            raise DeclarationError(subject, f"{content!r} is neither a folder nor a text.", "Give one of them.")
        self.declared[skill_id] = (skill_id, content, description, None)

        def note(function: Any) -> Any:
            self.declared[skill_id] = (skill_id, content, description, function)
            return function

        return note


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    return replace(catalog, skills=tuple(read_skill(*declared) for declared in setup.state.declared.values()))


PLUGIN = Plugin(
    name="skills",
    is_default=True,
    start=lambda setup: Skills(setup.site),
    declares={"skill": Skills.declare},
    derive=_derive,
)
