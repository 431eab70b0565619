"""Whether a text is a CSS selector.

cssselect is written for CSS 3 and refuses selectors that every current browser takes: `:not(.a, .b)`,
`:nth-child(2n of .a)`, `:has(> img)` inside others, `:host(.a)`, an empty `:is()`, and the `&` and `||` of newer
drafts. On the other side it takes `#1a` and `:nth-child(foo)`, which no browser does. So the arguments of functional
pseudo-classes are taken out and judged here, by the rules of Selectors Level 4, and cssselect sees what remains. Only
what is certainly not a selector is reported: unknown names of pseudo-classes and pseudo-elements pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from cssselect import SelectorError, parse

LONGEST = 2000
DEEPEST = 20

FORGIVING = frozenset({"is", "where", "matches", "-webkit-any", "-moz-any"})
LISTS = frozenset({"not", "host", "host-context", "slotted", "cue"})
RELATIVE = frozenset({"has"})
COUNTING = frozenset({"nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type", "nth-col", "nth-last-col"})

_ESCAPE = r"\\(?:[0-9a-fA-F]{1,6}\s?|[^\n\r\f])"
_STRING = r'"(?:[^"\\\n]|\\[\s\S])*"|' + r"'(?:[^'\\\n]|\\[\s\S])*'"
_COMMENT = r"/\*[\s\S]*?\*/"
_NAME = rf"(?:[-\w]|[^\x00-\x7f]|{_ESCAPE})+"
_PARTS = re.compile(
    rf"(?P<skip>{_COMMENT})|(?P<text>{_STRING}|{_ESCAPE})|:(?P<name>{_NAME})\(|(?P<open>[(\[])|(?P<close>[)\]])|(?P<comma>,)"
)
_COUNT = re.compile(r"\s*(?:odd|even|[+-]?\d+|[+-]?\d*n(?:\s*[+-]\s*\d+)?)\s*(?:\sof\s(?P<of>[\s\S]+))?", re.IGNORECASE)
_BAD_HASH = re.compile(r"#(?:-?\d|--?(?![-\w\\]|[^\x00-\x7f]))")
_TOKEN = re.compile(r"<(?:EOF|\w+ (?P<text>'.*')) at \d+>")
_LEADING_COMBINATOR = re.compile(r"\s*(?:>|\+|~|\|\|)")


@lru_cache(maxsize=4096)
def selector_fault(text: str) -> str | None:
    """Say why a text is not a CSS selector, or None if it is one (or may be one)."""
    if len(text) > LONGEST:
        return f"it is longer than {LONGEST} characters"
    return _fault(text, DEEPEST)


def _fault(text: str, depth: int) -> str | None:
    if depth == 0:
        return "its functions are nested too deeply"
    skeleton, functions, unbalanced = _take_apart(text)
    if unbalanced:
        return unbalanced
    for name, argument in functions:
        fault = _argument_fault(name.lower(), argument, depth - 1)
        if fault:
            return fault
    return _skeleton_fault(skeleton)


def _take_apart(text: str) -> tuple[str, list[tuple[str, str]], str | None]:
    """Replace every function call by its bare name; give the calls and whether the brackets match."""
    skeleton: list[str] = []
    functions: list[tuple[str, str]] = []
    at = 0
    while match := _PARTS.search(text, at):
        skeleton.append(text[at : match.start()])
        if not match["name"]:
            skeleton.append(" " if match["skip"] else match[0])
            at = match.end()
            continue
        end = _closing(text, match.end())
        if end is None:
            return "", [], f'the "(" of :{match["name"]}( is never closed'
        functions.append((match["name"], text[match.end() : end]))
        skeleton.append(f":{match['name']}")
        at = end + 1
    return "".join([*skeleton, text[at:]]), functions, None


def _closing(text: str, start: int) -> int | None:
    depth = 1
    for match in _PARTS.finditer(text, start):
        if match["name"] or match["open"]:
            depth += 1
        elif match["close"]:
            depth -= 1
        if depth == 0:
            return match.start()
    return None


def _argument_fault(name: str, argument: str, depth: int) -> str | None:
    if name in COUNTING:
        return _count_fault(name, argument, depth)
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


def _count_fault(name: str, argument: str, depth: int) -> str | None:
    match = _COUNT.fullmatch(argument)
    if match is None:
        return f'"{argument.strip()}" is no position for :{name}()'
    return _argument_fault("not", match["of"], depth) if match["of"] else None


def _split(argument: str) -> Iterator[str]:
    """Separate a list of selectors at its own commas."""
    depth, start = 0, 0
    for match in _PARTS.finditer(argument):
        if match["name"] or match["open"]:
            depth += 1
        elif match["close"]:
            depth -= 1
        elif match["comma"] and depth == 0:
            yield argument[start : match.start()]
            start = match.end()
    yield argument[start:]


def _skeleton_fault(skeleton: str) -> str | None:
    bare = re.sub(rf"{_STRING}|{_ESCAPE}|\[[^\]]*\]", "x", skeleton)
    if _BAD_HASH.search(bare):
        return 'an id after "#" cannot begin with a digit'
    try:
        parse(skeleton.replace("||", " ").replace("&", ":scope") if "&" in bare or "||" in bare else skeleton)
    except SelectorError as error:
        return _reworded(str(error))
    except (ValueError, RecursionError, OverflowError):
        return "it cannot be read"
    return None


def _reworded(complaint: str) -> str:
    """Put cssselect's words about tokens plainly; its positions are those of the skeleton and would mislead."""
    plain = _TOKEN.sub(lambda match: match["text"] or "the end", complaint)
    return plain[:1].lower() + plain[1:]
