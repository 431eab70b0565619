"""A check of CSS selectors by the syntax of Selectors Level 4.

Only definite errors are reported. Unknown names of pseudo-classes and pseudo-elements are accepted, and so are the
arguments of those that take no selectors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

MAX_LENGTH = 2000
MAX_DEPTH = 20

FORGIVING = frozenset({"is", "where", "matches", "-webkit-any", "-moz-any"})
LISTS = frozenset({"not", "host", "host-context", "slotted", "cue"})
RELATIVE = frozenset({"has"})
COUNTING = frozenset({"nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type", "nth-col", "nth-last-col"})

_ESCAPE = r"\\(?>[0-9a-fA-F]{1,6}\s?|[^\n\r\f])"
_STRING = r'"(?:[^"\\\n]|\\[\s\S])*+"|' + r"'(?:[^'\\\n]|\\[\s\S])*+'"
_COMMENT = r"/\*[\s\S]*?\*/"
_SPACE = rf"(?:\s|{_COMMENT})*+"
_NAME = rf"(?>--|-?(?>[A-Za-z_]|[^\x00-\x7f]|{_ESCAPE}))(?>[-0-9A-Za-z_]|[^\x00-\x7f]|{_ESCAPE})*+"
_PREFIX = rf"(?:(?:{_NAME}|\*)?\|(?![|=]))?"
_TOKEN = re.compile(
    rf"(?P<space>(?:\s|{_COMMENT})++)|(?P<comma>,)|(?P<combinator>\|\||[>+~])|::?(?P<function>{_NAME})\("
    rf"|(?P<simple>::?{_NAME}|[#.]{_NAME}"
    rf"|\[{_SPACE}{_PREFIX}{_NAME}{_SPACE}(?:[~|^$*]?={_SPACE}(?:{_NAME}|{_STRING}){_SPACE}(?:[A-Za-z]{_SPACE})?)?\])"
    rf"|(?P<type>{_PREFIX}(?:{_NAME}|\*)|&)"
)
_BRACKETS = re.compile(rf"(?P<skip>{_COMMENT}|{_STRING}|{_ESCAPE})|(?P<open>[(\[])|(?P<close>[)\]])|(?P<comma>,)")
_COUNT = re.compile(r"\s*(?:odd|even|[+-]?\d+|[+-]?\d*n(?:\s*[+-]\s*\d+)?)\s*(?:\sof\s(?P<of>[\s\S]+))?", re.IGNORECASE)
_LEADING_COMBINATOR = re.compile(r"\s*(?:>|\+|~|\|\|)")


@lru_cache(maxsize=4096)
def selector_fault(text: str) -> str | None:
    """Return why a text is not a CSS selector, or None if it is or may be one."""
    if len(text) > MAX_LENGTH:
        return f"it is longer than {MAX_LENGTH} characters"
    return _fault(text, MAX_DEPTH)


def _fault(text: str, depth: int) -> str | None:
    if depth == 0:
        return "its functions are nested too deeply"
    at, has_compound, is_open = 0, False, True  # is_open: a new compound selector may begin here
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            if re.match(r"#-?\d", text[at:]):
                return 'an id after "#" cannot begin with a digit'
            if text[at] == "[":
                return 'what begins with "[" is no complete attribute'
            return f'"{text[at]}" is not expected there'
        at = match.end()
        match match.lastgroup:
            case "space":
                is_open = True
                continue
            case "comma" | "combinator":
                if not has_compound:
                    return f'nothing stands before "{match[0]}"'
                has_compound, is_open = False, True
                continue
            case "type" if not is_open:
                return f'"{match[0]}" has to come first'
            case "function":
                end = _closing(text, at)
                if end is None:
                    return f'the "(" of :{match["function"]}( is never closed'
                if fault := _argument_fault(match["function"].lower(), text[at:end], depth - 1):
                    return fault
                at = end + 1
        has_compound, is_open = True, False
    return None if has_compound else "a selector is missing at its end"


def _closing(text: str, start: int) -> int | None:
    depth = 1
    for match in _BRACKETS.finditer(text, start):
        if match["open"]:
            depth += 1
        elif match["close"]:
            depth -= 1
        if depth == 0:
            return match.start()
    return None


def _argument_fault(name: str, argument: str, depth: int) -> str | None:
    if name in COUNTING:
        match = _COUNT.fullmatch(argument)
        if match is None:
            return f'"{argument.strip()}" is no position for :{name}()'
        return _argument_fault("not", match["of"], depth) if match["of"] else None
    if name in FORGIVING and not argument.strip():
        return None
    if name not in FORGIVING | LISTS | RELATIVE:
        return None
    for selector in _split(argument):
        if name in RELATIVE:
            selector = _LEADING_COMBINATOR.sub("", selector, count=1)
        fault = _fault(selector, depth)
        if fault:
            return f"in :{name}(), {fault}"
    return None


def _split(argument: str) -> Iterator[str]:
    """Split a list of selectors at its top-level commas."""
    depth, start = 0, 0
    for match in _BRACKETS.finditer(argument):
        if match["open"]:
            depth += 1
        elif match["close"]:
            depth -= 1
        elif match["comma"] and depth == 0:
            yield argument[start : match.start()]
            start = match.end()
    yield argument[start:]
