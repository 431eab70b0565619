"""Skills of a site, read from a folder or a text, as the Agent Skills specification has them (agentskills.io).

A skill is SKILL.md, which begins with front matter, and the files beside it. The front matter is read without a YAML
library, so only what such files say in practice is taken: texts, numbers, lists and mappings, no anchors and no tags.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import orjson

from awp_publish.discover.routes import docstring_of
from awp_publish.model import Skill
from awp_publish.problems import DeclarationError

MANIFEST: Final = "SKILL.md"

MAX_FILES: Final = 512
MAX_BYTES: Final = 16 * 1024 * 1024
"""Limits that every host takes (SEP-2640, Limits)."""

LONGEST_NAME: Final = 64
LONGEST_DESCRIPTION: Final = 1024

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FENCE: Final = "---"


def read_skill(
    skill_id: str, given: object, description: str | None = None, function: Callable[..., object] | None = None
) -> Skill:
    """Read a skill of a folder with a SKILL.md, of a text, or of the docstring of what was decorated.

    The skill is called as its id is, with hyphens. Raises DeclarationError.
    """
    subject, name = f'skill "{skill_id}"', skill_id.replace("_", "-")
    if _NAME.fullmatch(name) is None or len(name) > LONGEST_NAME:
        wrong = f"its name would be {name[:80]!r}, which is no name of a skill."
        raise DeclarationError(subject, wrong, f"Use at most {LONGEST_NAME} lower-case letters, digits and single _.")
    told = docstring_of(function) if function is not None else None
    if given is None:
        given, told = told, None
    folder, files = None, dict[str, bytes]()
    if isinstance(given, os.PathLike):
        folder = Path(given)
    elif isinstance(given, str) and given and "\n" not in given and len(given) < 4096 and "\0" not in given:
        # A text of one line is a folder that is there, or looks like one.
        folder = Path(given) if Path(given).is_dir() or re.fullmatch(r"[^\s]*/[^\s]*", given) else None
    if folder is not None:
        if not folder.is_dir():
            remedy = "Name one, or give the text itself."
            raise DeclarationError(subject, f"there is no folder {str(given)!r}.", remedy)
        root, size = folder.resolve(), 0
        for path in sorted(root.rglob("*")):  # hidden files, and links that lead out of it, are left out
            parts = path.relative_to(root).parts
            is_hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
            if is_hidden or not path.is_file() or not path.resolve().is_relative_to(root):
                continue
            size += path.stat().st_size
            if size > MAX_BYTES or len(files) == MAX_FILES:
                limits = f"{MAX_FILES} files and {MAX_BYTES // 1024**2} MiB"
                raise DeclarationError(subject, f"is larger than clients take: {limits} at most.", "Leave files out.")
            files["/".join(parts)] = path.read_bytes()
        if MANIFEST not in files:
            raise DeclarationError(subject, f"the folder {folder} has no {MANIFEST}.", "Write one.")
        try:
            text = files[MANIFEST].decode()
        except UnicodeDecodeError as error:
            raise DeclarationError(subject, f"{MANIFEST} is not UTF-8.", "Save it as UTF-8.") from error
    elif isinstance(given, str) and given.strip():
        text = given.strip() + "\n"
    else:
        raise DeclarationError(subject, "has neither a folder nor a text.", "Give one as the second argument.")
    facts, body = read_front_matter(subject, text)
    if facts is None:
        paragraphs = (part for part in re.split(r"\n\s*\n", body.strip()) if part)
        said = description or told or next((part for part in paragraphs if not part.lstrip().startswith("#")), "")
        if not said:
            raise DeclarationError(subject, "does not say what it is for.", 'Give description="...".')
        facts = {"name": name, "description": " ".join(said.split())[:LONGEST_DESCRIPTION]}
        text = f"{_FENCE}\nname: {name}\ndescription: {quoted(str(facts['description']))}\n{_FENCE}\n\n{body.lstrip()}"
    if facts.get("name") != name:
        wrong = f"the front matter of its {MANIFEST} says name: {facts.get('name')!r}."
        raise DeclarationError(subject, wrong, f"Write name: {name}, or give the skill that id.")
    purpose = facts.get("description")
    if not isinstance(purpose, str) or not purpose.strip() or len(purpose) > LONGEST_DESCRIPTION:
        wrong = f"the front matter of its {MANIFEST} has no description of 1 to {LONGEST_DESCRIPTION} characters."
        raise DeclarationError(subject, wrong, "Say what the skill does and when to use it.")
    # Bytes as they are: hosts compare digests of them. Only a front matter that we wrote ourselves is added.
    first = {MANIFEST: files[MANIFEST] if files and text == files[MANIFEST].decode() else text.encode()}
    return Skill(name, purpose, facts, first | {path: body for path, body in files.items() if path != MANIFEST})


def quoted(text: str) -> str:
    """Return a YAML scalar in double quotes: what JSON and YAML write alike."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# --- Front matter ---

_ENTRY: Final = re.compile(r"( *)([A-Za-z0-9_][^\s:#]*|\"[^\"\\]*\")\s*:(?: +(.*))?$")
_ITEM: Final = re.compile(r"( *)- +(.*)$")
_NUMBER: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_CONSTANTS: Final = {"null": None, "~": None, "": None, "true": True, "false": False}


def read_front_matter(subject: str, text: str) -> tuple[dict[str, object] | None, str]:
    """Return the front matter of a Markdown text, None if there is none, and the rest. Raises DeclarationError."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != _FENCE:
        return None, text
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None:
        raise DeclarationError(subject, "its front matter has no end.", "Close it with a line of ---.")
    rows = [line.rstrip() for line in lines[1:end]]
    found, rest = _read_mapping(subject, rows, 0, 0)
    if rest != len(rows):
        raise _unreadable(subject, rows[rest])
    return found, "\n".join(lines[end + 1 :])


def _read_mapping(subject: str, rows: list[str], at: int, indent: int) -> tuple[dict[str, object], int]:
    found = dict[str, object]()
    while at < len(rows):
        row = rows[at]
        if not row or row.lstrip().startswith("#"):
            at += 1
            continue
        entry = _ENTRY.match(row)
        if len(row) - len(row.lstrip(" ")) < indent:
            break
        if entry is None or len(entry[1]) != indent:
            raise _unreadable(subject, row)
        key, told = entry[2].strip('"'), _uncommented(entry[3] or "")
        if key in found:
            raise DeclarationError(subject, f"its front matter says {key} twice.", "Leave one out.")
        at += 1
        if re.fullmatch(r"[|>][-+]?", told):
            # A text of several lines: `|` keeps the ends of lines, `>` folds them to blanks.
            taken = list[str]()
            while at < len(rows) and (not rows[at] or len(rows[at]) - len(rows[at].lstrip(" ")) > indent):
                taken.append(rows[at])
                at += 1
            depth = min((len(one) - len(one.lstrip(" ")) for one in taken if one), default=0)
            kept = "\n".join(one[depth:] for one in taken).rstrip("\n")
            if told[0] == ">":
                kept = re.sub(r"(?<!\n)\n(?![\n ])", " ", kept)
                kept = re.sub(r"\n(\n+)", r"\1", kept)
            found[key] = kept if told.endswith("-") else f"{kept}\n"
        elif told:
            found[key] = _read_scalar(subject, told, row)
        else:
            following = next((line for line in rows[at:] if line and not line.lstrip().startswith("#")), "")
            deeper = len(following) - len(following.lstrip(" "))
            if _ITEM.match(following) is not None and deeper >= indent:
                items = list[object]()
                while at < len(rows):
                    row = rows[at]
                    if row and not row.lstrip().startswith("#"):
                        item = _ITEM.match(row)
                        if item is None or len(item[1]) != deeper:
                            break
                        items.append(_read_scalar(subject, _uncommented(item[2]), row))
                    at += 1
                found[key] = items
            elif deeper > indent:
                found[key], at = _read_mapping(subject, rows, at, deeper)
            else:
                found[key] = None
    return found, at


def _uncommented(told: str) -> str:
    told = told.strip()
    if told[:1] in ('"', "'"):
        end = re.match(r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'', told)
        return end[0] if end is not None and re.fullmatch(r"\s*(#.*)?", told[end.end() :]) else told
    return re.sub(r"(^|\s)#.*$", "", told).strip()


def _read_scalar(subject: str, told: str, row: str) -> object:
    if told in _CONSTANTS:
        return _CONSTANTS[told]
    if told[0] in '"[{':
        try:
            return orjson.loads(told)
        except orjson.JSONDecodeError as error:
            if (inner := re.fullmatch(r"\[([^\[\]{}\"']*)\]", told)) is not None:
                return [_read_scalar(subject, part.strip(), row) for part in inner[1].split(",")]
            raise _unreadable(subject, row) from error
    if told[0] == "'":
        if re.fullmatch(r"'(?:[^']|'')*'", told) is None:
            raise _unreadable(subject, row)
        return told[1:-1].replace("''", "'")
    if told[0] in "&*!|>%@`?,]}" or ": " in told or told.endswith(":") or told.startswith("- "):
        raise _unreadable(subject, row)
    if _NUMBER.fullmatch(told):
        if told.startswith(("0o", "0x")):
            return int(told, 0)
        return int(told) if re.fullmatch(r"[-+]?[0-9]+", told) else float(told)
    return told


def _unreadable(subject: str, row: str) -> DeclarationError:
    wrong = f"its front matter cannot be read at {row.strip()[:80]!r}."
    return DeclarationError(subject, wrong, 'Write "key: value", with the value in double quotes where in doubt.')
