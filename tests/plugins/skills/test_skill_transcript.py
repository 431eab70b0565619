"""What is read of the texts of skills, and what is refused of them: `skills.txt`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from awp_publish.plugins.skills.front_matter import quoted, read_front_matter
from awp_publish.plugins.skills.skills import read_skill
from tests.function_transcripts import compare


def skill(skill_id: str, given: Any, description: str | None = None, docstring: str | None = None) -> list[Any]:
    def function() -> None: ...

    function.__doc__ = docstring
    read = read_skill(skill_id, given, description, function if docstring is not None else None)
    return [
        read.name,
        read.description,
        dict(read.facts),
        {path: body.decode() for path, body in read.files.items()},
    ]


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "front": lambda text: read_front_matter("skill", f"---\n{text}\n---\nBody"),
    "text": lambda text: read_front_matter("skill", text),
    "quoted": quoted,
    "skill": skill,
    "long": lambda size: len(read_skill("long", "x" * size).description),
    "named": lambda size: read_skill("a" * size, "Do it.").name,
    "described": lambda size: len(read_skill("a", f"---\nname: a\ndescription: {'x' * size}\n---\n").description),
}


def test_skills_are_read_as_reviewed(request):
    compare(Path(__file__).parent / "skills.txt", FUNCTIONS, request)
