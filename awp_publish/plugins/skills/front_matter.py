"""The front matter of a skill."""

import re
from typing import Final

import orjson

from awp_publish.problems import DeclarationError


def quoted(text: str) -> str:
    """Return a double-quoted scalar that means the same in JSON and YAML."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


_ENTRY: Final = re.compile(r"( *)([A-Za-z0-9_][^\s:#]*|\"[^\"\\]*\")\s*:(?: +(.*))?$")


_ITEM: Final = re.compile(r"( *)- +(.*)$")


_NUMBER: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


_CONSTANTS: Final = {"null": None, "~": None, "": None, "true": True, "false": False}


def read_front_matter(subject: str, text: str) -> tuple[dict[str, object] | None, str]:
    """Return the front matter of a Markdown text (None if it has none) and the rest. Raises DeclarationError."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        return None, text
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise DeclarationError(subject, "its front matter has no end.", "Close it with a line of ---.")
    rows = [line.rstrip() for line in lines[1:end]]
    mapping, rest = _read_mapping(subject, rows, 0, 0)
    if rest != len(rows):
        raise _unreadable_row(subject, rows[rest])
    return mapping, "\n".join(lines[end + 1 :])


def _read_mapping(subject: str, rows: list[str], at: int, indent: int) -> tuple[dict[str, object], int]:
    mapping = dict[str, object]()
    while at < len(rows):
        row = rows[at]
        if not row or row.lstrip().startswith("#"):
            at += 1
            continue
        entry = _ENTRY.match(row)
        if len(row) - len(row.lstrip(" ")) < indent:
            break
        if entry is None or len(entry[1]) != indent:
            raise _unreadable_row(subject, row)
        key, rest = entry[2].strip('"'), _uncommented(entry[3] or "")
        if key in mapping:
            raise DeclarationError(subject, f"its front matter has {key} twice.", "Leave one out.")
        at += 1
        if re.fullmatch(r"[|>]-?", rest):
            # A text of several lines: `|` keeps line breaks, `>` folds them to spaces.
            text_lines = list[str]()
            while at < len(rows) and (not rows[at] or len(rows[at]) - len(rows[at].lstrip(" ")) > indent):
                text_lines.append(rows[at])
                at += 1
            depth = min((len(line) - len(line.lstrip(" ")) for line in text_lines if line), default=0)
            text = "\n".join(line[depth:] for line in text_lines).rstrip("\n")
            if rest[0] == ">":
                text = re.sub(r"(?<!\n)\n(?![\n ])", " ", text)
                text = re.sub(r"\n(\n+)", r"\1", text)
            mapping[key] = text if rest.endswith("-") or not text else f"{text}\n"
        elif rest:
            mapping[key] = _read_scalar(subject, rest, row)
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
                mapping[key] = items
            elif deeper > indent:
                mapping[key], at = _read_mapping(subject, rows, at, deeper)
            else:
                mapping[key] = None
    return mapping, at


def _uncommented(text: str) -> str:
    text = text.strip()
    if text[:1] in ('"', "'"):
        end = re.match(r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'', text)
        return end[0] if end is not None and re.fullmatch(r"\s*(#.*)?", text[end.end() :]) else text
    return re.sub(r"(^|\s)#.*$", "", text).strip()


def _read_scalar(subject: str, text: str, row: str) -> object:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in '"[{':
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError as error:
            if (inner := re.fullmatch(r"\[([^\[\]{}\"']*)\]", text)) is not None:
                return [_read_scalar(subject, part.strip(), row) for part in inner[1].split(",")]
            raise _unreadable_row(subject, row) from error
    if text[0] == "'":
        if re.fullmatch(r"'(?:[^']|'')*'", text) is None:
            raise _unreadable_row(subject, row)
        return text[1:-1].replace("''", "'")
    if text[0] in "&*!|>%@`?,]}" or ": " in text or text.endswith(":") or text.startswith("- "):
        raise _unreadable_row(subject, row)
    if _NUMBER.fullmatch(text):
        if text.startswith(("0o", "0x")):
            return int(text, 0)
        return int(text) if re.fullmatch(r"[-+]?[0-9]+", text) else float(text)
    return text


def _unreadable_row(subject: str, row: str) -> DeclarationError:
    wrong = f"its front matter cannot be read at {row.strip()[:80]!r}."
    return DeclarationError(subject, wrong, 'Write "key: value", with the value in double quotes where in doubt.')


FENCE: Final = "---"
