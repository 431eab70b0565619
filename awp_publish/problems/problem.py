"""`Problem`: what every refusal and failure of a call has in common, and what a wrong declaration raises."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

MAX_VIOLATIONS: Final = 20
"""Violations that a problem tells, whatever was sent."""

MAX_TEXT: Final = 300
"""Characters of a violation's pointer and of its detail, and of what a route says of its refusal."""


def shorten(text: str) -> str:
    """The text, or what goes of it into MAX_TEXT characters."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong with an input or output.

    `pointer` is an RFC 6901 JSON Pointer into the value, "" for the value itself. Long ones are shortened, details too.
    """

    pointer: str
    detail: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "pointer", shorten(self.pointer))
        object.__setattr__(self, "detail", shorten(self.detail))


class Problem(Exception):
    """Something that kept a call from succeeding, with the evidence.

    `detail` says what was wrong, where, and is safe to show to the caller; of `errors` the first are kept. `status`
    overrides the class's HTTP status, `recovery` the class's instruction, `code` the machine-readable code (RFC 9457
    leaves codes to the deployment). `headers` belong to the HTTP answer (`Allow`, `Retry-After`, ...). `members` are
    further RFC 9457 extension members.
    """

    slug: ClassVar[str] = "problem"
    title: ClassVar[str] = "The call did not succeed"
    default_status: ClassVar[int] = 500
    default_recovery: ClassVar[str] = "Read detail, then retry the call with a corrected request."

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        code: str | None = None,
        recovery: str | None = None,
        errors: Sequence[Violation] = (),
        headers: Sequence[tuple[str, str]] = (),
        members: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = self.default_status if status is None else status
        self.code = code or code_of(self.slug)
        self.recovery = recovery
        self.errors = tuple(errors[:MAX_VIOLATIONS])
        self.headers = tuple(headers)
        self.members = dict(members or {})

    def __str__(self) -> str:
        return f"{self.code} ({self.status}): {self.detail}"


def code_of(slug: str) -> str:
    """The machine code of a slug: `invalid-input` is `INVALID_INPUT`."""
    return slug.upper().replace("-", "_")


def slug_of(code: str) -> str:
    """The slug of a machine code: `INVALID_INPUT` is `invalid-input`."""
    return code.lower().replace("_", "-")


class DeclarationError(Exception):
    """A site or an action is declared wrongly. Raised at start-up and by the decorators, never in traffic.

    `subject` names what is wrong (`action "search_books"`), `detail` says what, `remedy` what to do.
    """

    def __init__(self, subject: str, detail: str, remedy: str = "") -> None:
        super().__init__(f"{subject}: {detail}" + (f" {remedy}" if remedy else ""))
        self.subject = subject
        self.detail = detail
        self.remedy = remedy
