"""Regular expressions of Python and Rust as `pattern` has to be written: ECMA-262 with the `u` flag.

JSON Schema 2020-12 core, section 6.4, asks for ECMA-262, and clients compile with the `u` flag: JavaScript then refuses
what it does not know (`\\z`, `\\@`, `(?P<n>...)`) instead of ignoring it. What is written here compiles in Python too,
whose clients use `re`.

Three things are wider or narrower in other languages. In Python and Rust, `\\w` of a text has the letters of all
scripts, for which `re` has no class: with `is_unicode` it becomes the ASCII ones and everything outside of ASCII; the
site itself refuses the rest. `\\d` stays the digits 0 to 9, and `\\s` what each language has.
"""

import re
import unicodedata
import warnings
from typing import Final

_SYNTAX: Final = frozenset("^$\\.*+?()[]{}|/")
_CLASS_SYNTAX: Final = "\\]^[-"
_CONTROLS: Final = {"a": "\\x07", "f": "\\f", "n": "\\n", "r": "\\r", "t": "\\t", "v": "\\v"}
_ENDS: Final = {"A": "^", "Z": "$", "z": "$"}
_REPEAT: Final = re.compile(r"\{(?=,?\d)(\d*)(,?)(\d*)\}")
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_CODE: Final = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|[xu]\{([0-9a-fA-F]{1,6})\}")
_PROPERTY: Final = re.compile(r"([pP])(?:\{(\^?)([\w=]+)\}|([A-Z]))")
_NAME: Final = re.compile(r"N\{([^}]+)\}")
_OCTAL: Final = re.compile(r"0[0-7]{0,2}|[1-3][0-7]{2}")
_NUMBER: Final = re.compile(r"[1-9]\d?")
_GROUP_NAME: Final = re.compile(r"\(\?P?<([^\W\d]\w*)>")


class UntranslatablePattern(ValueError):
    """A regular expression with something that ECMA-262 does not have."""


def to_ecma(expression: str, *, flags: int = 0, is_unicode: bool = False) -> str:
    """Return an expression in ECMA-262's syntax with the `u` flag; one that is in it already is returned as it is.

    `flags` are those of `re`. Raises UntranslatablePattern.
    """
    translated = _Translation(expression, flags, is_unicode).whole()
    if translated != expression or is_unicode:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                re.compile(translated)
        except (re.error, OverflowError, RecursionError) as error:
            if not re.search(r"\\[pPku]|\(\?<\w", translated):  # ECMA-262's own, which Python does not have
                raise UntranslatablePattern(f"it is not a regular expression: {error}") from error
    return translated


class _Translation:
    """One pass over an expression. `_open` has for each open group whether a quantifier may follow it, whether it is a
    negative assertion, and the flags to go back to: for words of all scripts, ignored case and a dot that takes all.
    """

    def __init__(self, expression: str, flags: int, is_unicode: bool) -> None:
        self._text, self._at = expression, 0
        self._is_unicode = is_unicode
        self._ignores_case = self._dot_takes_all = self._is_negative = False
        self._open: list[tuple[bool, bool, tuple[bool, bool, bool]]] = []
        self._names: dict[str, int] = {}
        self._groups = 0
        self._set({letter for letter, flag in _LETTERS.items() if flags & flag}, set())

    def whole(self) -> str:
        made: list[str] = []
        is_atom = False
        while self._at < len(self._text):
            piece, is_atom = self._next(is_atom)
            made.append(piece)
        if self._open:
            raise UntranslatablePattern("it has a parenthesis that is not closed")
        return "".join(made)

    def _next(self, is_atom: bool) -> tuple[str, bool]:
        """Return the next piece, and whether it may be repeated."""
        text, at = self._text, self._at
        letter = text[at]
        if letter in "*+?" or _REPEAT.match(text, at):
            return self._quantifier(is_atom), False
        self._at = at + 1
        if letter == "\\":
            return self._escape()
        if letter == "[":
            return self._class(), True
        if letter == "(":
            return self._group()
        if letter == ")":
            if not self._open:
                raise UntranslatablePattern("it has a parenthesis that is not opened")
            repeats, self._is_negative, flags = self._open.pop()
            self._is_unicode, self._ignores_case, self._dot_takes_all = flags
            return ")", repeats
        if letter == ".":
            return "[\\s\\S]" if self._dot_takes_all else ".", True
        if letter in "^$|":
            return letter, False
        return self._literal(letter), True

    def _literal(self, letter: str) -> str:
        if self._ignores_case and letter.lower() != letter.upper():
            if not letter.isascii():
                raise UntranslatablePattern("it ignores the case of letters outside of ASCII")
            return f"[{letter.lower()}{letter.upper()}]"
        return f"\\{letter}" if letter in _SYNTAX - {"/"} else letter

    def _quantifier(self, is_atom: bool) -> str:
        if not is_atom:
            raise UntranslatablePattern("it repeats something that cannot be repeated in ECMA-262")
        repeat = _REPEAT.match(self._text, self._at)
        if repeat is None:
            written = self._text[self._at]
            self._at += 1
        else:
            least, comma, most = repeat.groups()
            if most and int(least or 0) > int(most):
                raise UntranslatablePattern("it has a repetition whose minimum is above its maximum")
            written = f"{{{least or 0}{comma}{most}}}"
            self._at = repeat.end()
        following = self._text[self._at : self._at + 1]
        if following == "+":
            raise UntranslatablePattern("it has a possessive quantifier")
        if following == "?":
            self._at += 1
            return f"{written}?"
        return written

    def _group(self) -> tuple[str, bool]:
        text, start = self._text, self._at - 1
        before = (self._is_unicode, self._ignores_case, self._dot_takes_all)

        def enter(opened: str, end: int, *, repeats: bool = True, is_negative: bool = False) -> tuple[str, bool]:
            self._at = end
            self._open.append((repeats, self._is_negative, before))
            self._is_negative = self._is_negative or is_negative
            return opened, False

        if not text.startswith("(?", start):
            self._groups += 1
            return enter("(", start + 1)
        for opened in ("(?=", "(?!", "(?<=", "(?<!"):
            if text.startswith(opened, start):
                return enter(opened, start + len(opened), repeats=False, is_negative=opened.endswith("!"))
        if text.startswith("(?#", start):
            end = text.find(")", start)
            if end == -1:
                raise UntranslatablePattern("it has a comment that is not closed")
            self._at = end + 1
            return "", False
        if match := _GROUP_NAME.match(text, start):
            self._groups += 1
            self._names[match[1]] = self._groups
            return enter("(" if match[0].startswith("(?P") else match[0], match.end())
        if match := re.compile(r"\(\?P=(\w+)\)").match(text, start):
            self._at = match.end()
            return self._reference(str(self._names.get(match[1], 0))), True
        if match := _FLAGS.match(text, start):
            self._at = match.end()
            piece = enter("(?:", match.end()) if match[3] == ":" else ("", False)
            self._set(set(match[1]), set(match[2] or ""))
            return piece
        raise UntranslatablePattern(f"it has a group that ECMA-262 does not have: {text[start : start + 4]}")

    def _set(self, on: set[str], off: set[str]) -> None:
        if unknown := (on | off) - {"i", "s", "a", "u"}:
            raise UntranslatablePattern(f"it has the flag {min(unknown)}")
        if "a" in on or "u" in off:
            self._is_unicode = False
        self._ignores_case = (self._ignores_case or "i" in on) and "i" not in off
        self._dot_takes_all = (self._dot_takes_all or "s" in on) and "s" not in off

    def _reference(self, number: str) -> str:
        if not 0 < int(number) <= self._groups:
            raise UntranslatablePattern("it refers to a group that is not before it")
        if self._ignores_case:
            raise UntranslatablePattern("it ignores the case of what it refers to")
        following = self._text[self._at : self._at + 1]
        return f"\\{number}(?:)" if following.isdigit() else f"\\{number}"

    def _escape(self) -> tuple[str, bool]:
        """Return what stands behind a backslash outside of a class."""
        letter = self._text[self._at : self._at + 1]
        if letter in _ENDS:
            self._at += 1
            return _ENDS[letter], False
        if letter in ("b", "B"):
            if self._is_unicode:
                raise UntranslatablePattern("it uses word boundaries, which differ in ECMA-262")
            self._at += 1
            return f"\\{letter}", False
        if letter in ("w", "W") and self._is_unicode:
            self._at += 1
            return self._members(f"[\\{letter}]"), True
        if named := re.compile(r"k<\w+>").match(self._text, self._at):
            self._at = named.end()
            return f"\\{named[0]}", True
        number = _NUMBER.match(self._text, self._at)
        if number is not None and not _OCTAL.match(self._text, self._at):
            self._at = number.end()
            return self._reference(number[0]), True
        escaped, plain = self._code()
        return (self._literal(plain) if plain is not None else escaped), True

    def _code(self) -> tuple[str, str | None]:
        """Return an escape of one character or of a set of them as ECMA-262 writes it, or the character that it is."""
        text, at = self._text, self._at
        letter = text[at : at + 1]
        self._at = at + 1
        if letter in _CONTROLS:
            return _CONTROLS[letter], None
        if letter and letter in "dDsSwW":
            return f"\\{letter}", None
        if match := _CODE.match(text, at):
            self._at = match.end()
            return self._character(int(next(digits for digits in match.groups() if digits), 16), match[0])
        if match := _PROPERTY.match(text, at):
            self._at = match.end()
            is_turned = (match[1] == "P") != bool(match[2])
            return f"\\{'P' if is_turned else 'p'}{{{match[3] or match[4]}}}", None
        if match := _NAME.match(text, at):
            self._at = match.end()
            try:
                return "", unicodedata.lookup(match[1])
            except KeyError as error:
                raise UntranslatablePattern(f"it names an unknown character, {match[1]}") from error
        if match := _OCTAL.match(text, at):
            self._at = match.end()
            return self._character(int(match[0], 8), "")
        if re.compile(r"c[A-Za-z]").match(text, at):
            self._at = at + 2
            return self._character(ord(text[at + 1].upper()) - 64, "")
        if not letter or (letter.isalnum() and letter.isascii()):
            raise UntranslatablePattern(f"it has the escape \\{letter}, which ECMA-262 does not have")
        return (f"\\{letter}", None) if letter in _SYNTAX else ("", letter)

    def _character(self, code: int, written: str) -> tuple[str, str | None]:
        if code > 0x10FFFF:
            raise UntranslatablePattern("it has a character that Unicode does not have")
        if len(written) in (3, 5) and "{" not in written and not self._ignores_case:
            return f"\\{written}", None
        if 0xD800 <= code < 0xE000:
            return f"\\u{code:04x}", None
        return (f"\\x{code:02x}", None) if code < 32 else ("", chr(code))

    def _class(self) -> str:
        """Return a class: as it is with other escapes, or by its members where it means other ones in ECMA-262."""
        text, start = self._text, self._at - 1
        made = ["["]
        has_words = False
        if text.startswith("^", self._at):
            made.append("^")
            self._at += 1
        is_first, is_ascii = True, True
        while True:
            if self._at >= len(text):
                raise UntranslatablePattern("it has a class that is not closed")
            letter = text[self._at]
            self._at += 1
            if letter == "]" and not is_first:
                break
            is_first = False
            if letter == "]":
                made.append("\\]")
            elif letter != "\\":
                made.append(letter)
                is_ascii = is_ascii and letter.isascii()
            elif text.startswith(("b", "-"), self._at):
                made.append(f"\\{text[self._at]}")
                self._at += 1
            else:
                has_words = has_words or text.startswith(("w", "W"), self._at)
                escaped, plain = self._code()
                is_ascii = is_ascii and (plain or "").isascii() and not re.match(r"\\[upP]", escaped)
                made.append(escaped if plain is None else f"\\{plain}" if plain in _CLASS_SYNTAX else plain)
        if has_words and self._is_unicode:
            return self._members(text[start : self._at])
        if self._ignores_case:
            if not is_ascii:
                raise UntranslatablePattern("it ignores the case of letters outside of ASCII")
            return self._members(text[start : self._at])
        return "".join((*made, "]"))

    def _members(self, written: str) -> str:
        """Return a class by its members in ASCII, with all that is outside of it where any may be."""
        has_words = self._is_unicode and re.search(r"\\[wW]", written) is not None
        if has_words and self._is_negative:
            raise UntranslatablePattern("it excludes what begins with a letter, of which ECMA-262 has others")
        flags = re.IGNORECASE if self._ignores_case else re.NOFLAG
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read = re.compile(written, flags)
        except re.error as error:
            raise UntranslatablePattern(f"it is not a regular expression: {error}") from error
        members = [code for code in range(128) if read.fullmatch(chr(code))]
        is_open = has_words or read.fullmatch("\u2022") is not None  # it stands for all that is outside of ASCII
        listed = [code for code in range(128) if code not in members] if is_open else members
        if not listed:
            return "[\\s\\S]" if is_open else "[^\\s\\S]"
        ranges: list[list[int]] = []
        for code in listed:
            if ranges and code == ranges[-1][1] + 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
        escaped = "".join(
            _shown(least) if least == most else f"{_shown(least)}{'-' if most - least > 1 else ''}{_shown(most)}"
            for least, most in ranges
        )
        return f"[{'^' if is_open else ''}{escaped}]"


_LETTERS: Final = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE, "x": re.VERBOSE, "a": re.ASCII}


def _shown(code: int) -> str:
    letter = chr(code)
    if code < 32 or code == 127:
        return f"\\x{code:02x}"
    return f"\\{letter}" if letter in _CLASS_SYNTAX else letter
