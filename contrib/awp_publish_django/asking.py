"""What a page says that a view answers with instead of a result: what it asks for first, or what is wrong."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin, urlsplit

MAX_SHOWN: Final = 300
"""Characters of a page's own words in a refusal."""

MAX_READ: Final = 1_000_000
MAX_NESTED: Final = 10
"""Characters of a page that are read, and labels or messages within each other whose words are collected."""

_TITLES: Final = frozenset({"title", "h1", "h2"})
_VOID: Final = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
_WRONG: Final = frozenset({"errorlist", "error", "errors", "alert-danger", "alert-error", "invalid-feedback"})


@dataclass(frozen=True, slots=True)
class PageWords:
    """The title of a page, its messages of errors, and the fields of its forms that are sent to the page's own address.

    Fields are labels by names in the request. Other forms, such as one for a newsletter, ask for nothing first.
    """

    title: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    errors: tuple[str, ...] = ()

    def refusal(self, sent: set[str]) -> tuple[int, str]:
        """Return the status and the words for a call that has `sent` these fields."""
        title = f'"{self.title}"' if self.title else "a page without a title"
        if self.errors:
            return 422, _short(" ".join(self.errors))
        missing = [label for name, label in self.fields.items() if name not in sent]
        if missing:
            return 428, _short(f"The site first asks for something on the page {title}: {', '.join(missing)}.")
        if self.fields:
            return 409, f"The site shows its form on the page {title} again, without a reason."
        return (
            409,
            f"The site answered with {title}, which does not say whether it took effect: check before you call again.",
        )


def read_words(page: str, path: str) -> PageWords:
    """Return what the page at a path says."""
    reader = _WordReader(path)
    reader.feed(page[:MAX_READ])
    title = next((reader.titles[tag] for tag in ("h1", "h2", "title") if reader.titles.get(tag)), "")
    fields = {name: reader.labels.get(owner) or label for name, (owner, label) in reader.fields.items()}
    return PageWords(_short(title), fields, tuple(filter(None, reader.errors)))


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


class _WordReader(HTMLParser):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self.titles: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.fields: dict[str, tuple[str, str]] = {}
        self.errors: list[str] = []
        self._is_posted = False
        self._collects: list[tuple[str, str, int]] = []  # what the text is of, its key, how deep it began
        self._texts: list[list[str]] = []
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag not in _VOID:
            self._depth += 1
        if tag == "form":
            is_own = urlsplit(urljoin(self._path, attributes.get("action", ""))).path == self._path
            self._is_posted = is_own and attributes.get("method", "").lower() == "post"
        elif tag in _TITLES:
            self._begin("title", tag)
        elif tag == "label":
            self._begin("label", attributes.get("for", ""))
        elif tag in ("input", "textarea", "select") and self._is_posted:
            kind = attributes.get("type", "").lower()
            name = attributes.get("name", "")
            if name and kind not in ("hidden", "submit", "button", "image", "reset"):
                words = attributes.get("aria-label") or attributes.get("placeholder") or name
                self.fields.setdefault(name, (attributes.get("id", ""), words))
        if (
            tag not in _VOID
            and not _WRONG.isdisjoint(attributes.get("class", "").split())
            and not self._is_within("error")
        ):
            self._begin("error", "")

    def _begin(self, kind: str, key: str) -> None:
        if len(self._collects) < MAX_NESTED:
            self._collects.append((kind, key, self._depth))
            self._texts.append([])

    def _is_within(self, kind: str) -> bool:
        return any(name == kind for name, _, _ in self._collects)

    def handle_data(self, data: str) -> None:
        for texts in self._texts:
            texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if tag == "form":
            self._is_posted = False
        while self._collects and self._collects[-1][2] >= self._depth:
            kind, key, _ = self._collects.pop()
            text = " ".join("".join(self._texts.pop()).split()).rstrip(":")
            if kind == "title":
                self.titles.setdefault(key, text)
            elif kind == "label":
                self.labels.setdefault(key, text)
            else:
                self.errors.append(text)
        self._depth -= 1
