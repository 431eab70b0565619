"""Skills, read from a folder or a text (Agent Skills specification, agentskills.io)."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from awp_publish.model import MAX_SKILL_DESCRIPTION, MAX_SKILL_NAME, SKILL_FILE, Skill
from awp_publish.plugins.skills.front_matter import FENCE, quoted, read_front_matter
from awp_publish.problems import DeclarationError
from awp_publish.schema.handlers import docstring_of

MAX_FILES: Final = 512


MAX_BYTES: Final = 16 * 1024 * 1024
"""Limits that every host accepts (SEP-2640, Limits)."""


_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def read_skill(
    skill_id: str, source: object, description: str | None = None, function: Callable[..., object] | None = None
) -> Skill:
    """Read a skill from a folder with a SKILL.md, from a text, or from the docstring of the decorated function.

    Its name is the id with hyphens. Raises DeclarationError.
    """
    subject, name = f'skill "{skill_id}"', skill_id.replace("_", "-")
    if _NAME.fullmatch(name) is None or len(name) > MAX_SKILL_NAME:
        wrong = f"its name would be {name[:80]!r}, which is not a valid name of a skill."
        raise DeclarationError(subject, wrong, f"Use at most {MAX_SKILL_NAME} lower-case letters, digits and single _.")
    doc = docstring_of(function) if function is not None else None
    if source is None:
        source, doc = doc, None
    folder, files = None, dict[str, bytes]()
    if isinstance(source, os.PathLike):
        folder = Path(source)
    elif isinstance(source, str) and source and "\n" not in source:
        # A text of one line is a folder if that exists, or if it looks like a path.
        folder = Path(source) if os.path.isdir(source) or re.fullmatch(r"[^\s]*/[^\s]*", source) else None
    if folder is not None:
        if not os.path.isdir(folder):
            remedy = "Name one, or give the text itself."
            raise DeclarationError(subject, f"there is no folder {str(source)!r}.", remedy)
        root, size = folder.resolve(), 0
        for path in sorted(root.rglob("*")):  # without hidden files, and links that lead out of the folder
            parts = path.relative_to(root).parts
            is_hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
            if is_hidden or not path.is_file() or not path.resolve().is_relative_to(root):
                continue
            size += path.stat().st_size
            if size > MAX_BYTES or len(files) == MAX_FILES:
                limits = f"{MAX_FILES} files and {MAX_BYTES // 1024**2} MiB"
                raise DeclarationError(subject, f"is larger than clients accept: {limits} at most.", "Leave files out.")
            files["/".join(parts)] = path.read_bytes()
        if SKILL_FILE not in files:
            raise DeclarationError(subject, f"the folder {folder} has no {SKILL_FILE}.", "Write one.")
        try:
            text = files[SKILL_FILE].decode()
        except UnicodeDecodeError as error:
            raise DeclarationError(subject, f"{SKILL_FILE} is not UTF-8.", "Save it as UTF-8.") from error
    elif isinstance(source, str) and source.strip():
        text = source.strip() + "\n"
    else:
        raise DeclarationError(subject, "has neither a folder nor a text.", "Give one as the second argument.")
    facts, body = read_front_matter(subject, text)
    if facts is None:
        paragraphs = (part for part in re.split(r"\n\s*\n", body.strip()) if part)
        summary = description or doc or next((part for part in paragraphs if not part.lstrip().startswith("#")), "")
        if not summary:
            raise DeclarationError(subject, "has no description.", 'Give description="...".')
        facts = {"name": name, "description": " ".join(summary.split())[:MAX_SKILL_DESCRIPTION]}
        text = f"{FENCE}\nname: {name}\ndescription: {quoted(str(facts['description']))}\n{FENCE}\n\n{body.lstrip()}"
    if facts.get("name") != name:
        wrong = f"the front matter of its {SKILL_FILE} says name: {facts.get('name')!r}."
        raise DeclarationError(subject, wrong, f"Write name: {name}, or give the skill that id.")
    purpose = facts.get("description")
    if not isinstance(purpose, str) or not purpose.strip() or len(purpose) > MAX_SKILL_DESCRIPTION:
        wrong = f"the front matter of its {SKILL_FILE} has no description of 1 to {MAX_SKILL_DESCRIPTION} characters."
        raise DeclarationError(subject, wrong, "Say what the skill does and when to use it.")
    # The file is kept byte for byte, because hosts compare its digest, unless the front matter had to be added.
    first = {SKILL_FILE: files[SKILL_FILE] if files and text == files[SKILL_FILE].decode() else text.encode()}
    return Skill(name, purpose, facts, first | {path: body for path, body in files.items() if path != SKILL_FILE})
