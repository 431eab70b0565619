"""Prompts, skills and events, which a site offers beside its actions."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from awp_publish.model.values import KNOWN, PUBLIC, Function, JsonObject

Complete: TypeAlias = Callable[[str, str, Mapping[str, str]], Awaitable[Sequence[str] | None]]
"""Suggests values of an argument from its name, the text typed so far and the other arguments. None: unsupported."""


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """A value that a person fills in. `choices` are all allowed values, if the schema lists them."""

    name: str
    description: str | None
    required: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A text that a person selects for their own model.

    `write` makes it from the arguments, as JSON: a string, or a list of pairs of a role ("user", "assistant") and a
    text. For an image, a sound or a file the text is base64 and the pair has the media type as a third item. It raises
    InvalidInput, or what its function raises. `action` is the id of the action that has the same function, if any.
    """

    id: str
    name: str
    description: str | None
    arguments: tuple[PromptArgument, ...]
    write: Function = field(compare=False, repr=False)
    complete: Complete | None = field(default=None, compare=False, repr=False)
    action: str | None = None


SKILL_FILE: Final = "SKILL.md"
MAX_SKILL_NAME: Final = 64
MAX_SKILL_DESCRIPTION: Final = 1024
"""The main file of a skill, and the maximal length of its name and its description (agentskills.io)."""


@dataclass(frozen=True, slots=True)
class Skill:
    """Instructions for a task on the site, which agents read before they do it (agentskills.io).

    `facts` are the front matter of its SKILL.md. `files` are the bytes of all its files by their path in the skill,
    SKILL.md first.
    """

    name: str
    description: str
    facts: JsonObject
    files: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens on the site and to which agents can subscribe.

    `payload` is the JSON Schema of an occurrence's data, `inputs` that of a subscription's filters. `audience` are
    those who may see that the event exists; each occurrence has an audience of its own.
    """

    id: str
    description: str
    payload: JsonObject
    inputs: JsonObject
    audience: str = PUBLIC

    def is_for(self, scopes: frozenset[str] | None) -> bool:
        """Return True if a caller with these scopes may see the event; None means an unknown caller."""
        return self.audience == PUBLIC or (scopes is not None and (self.audience == KNOWN or self.audience in scopes))
