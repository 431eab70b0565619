"""The gates in their order, as the documentation tells them: what declares a gate, and what it refuses."""

from dataclasses import dataclass
from typing import Final

from awp_publish.policy.idempotency import CLAIM_AFTER
from awp_publish.problems import (
    AnswerNotKept,
    AuthenticationRequired,
    AuthExpired,
    ConfirmationExpired,
    ConfirmationForeign,
    ConfirmationMismatch,
    ConfirmationRequired,
    ConfirmationSpent,
    ConfirmationTampered,
    CrossSiteCookies,
    ForeignHost,
    IdempotencyKeyInFlight,
    IdempotencyKeyReused,
    InsufficientScope,
    InvalidCredentials,
    InvalidIdempotencyKey,
    InvalidInput,
    InvalidOutput,
    OutcomeUnknown,
    PrerequisiteRequired,
    Problem,
    RateLimited,
    SessionUnknown,
    StoreUnavailable,
    TemporarilyUnavailable,
)


@dataclass(frozen=True, slots=True)
class GateFacts:
    """One gate: its name, the options that put it there, and the problems with which it refuses."""

    name: str
    declared_by: str
    refuses: tuple[type[Problem], ...]


GATES: Final = (
    GateFacts("browsers", "always there", (ForeignHost, CrossSiteCookies)),
    GateFacts("liveness", "`@site.status`, `set_status`", (TemporarilyUnavailable,)),
    GateFacts("session", "cookies of the site, see [sessions](sessions.md)", (SessionUnknown,)),
    GateFacts(
        "authentication",
        "`authenticate`, `auth_required`, `scopes`",
        (AuthenticationRequired, InvalidCredentials, AuthExpired, InsufficientScope, RateLimited),
    ),
    GateFacts("limits", "`rate_limit`", (RateLimited,)),
    GateFacts("input", "always there", (InvalidInput,)),
    GateFacts(
        "idempotency",
        "`idempotency`",
        (InvalidIdempotencyKey, IdempotencyKeyReused, IdempotencyKeyInFlight, OutcomeUnknown, AnswerNotKept),
    ),
    GateFacts(
        "confirmation",
        '`confirm`, `effect="irreversible"`',
        (
            ConfirmationRequired,
            ConfirmationExpired,
            ConfirmationTampered,
            ConfirmationForeign,
            ConfirmationSpent,
            ConfirmationMismatch,
        ),
    ),
    GateFacts("prerequisites", "`requires`", (PrerequisiteRequired,)),
    GateFacts("store", "every gate that remembers", (StoreUnavailable,)),
    GateFacts("output", "always there", (InvalidOutput,)),
)


def gate_table() -> str:
    """The gates as a Markdown table."""
    rows = [
        f"| {gate.name} | {gate.declared_by} | {kind.title} | {kind.default_status} | `{kind.slug}` "
        f"| {kind.default_recovery} |"
        for gate in GATES
        for kind in gate.refuses
    ]
    return "\n".join(
        ("| gate | declared by | refuses | status | problem type | recovery |", "|---|" + "---|" * 5, *rows)
    )


def claim_table() -> str:
    """What becomes of an idempotency key, as a Markdown table."""
    rows = [f"| {ended} | {' | '.join(fates)} |" for ended, fates in CLAIM_AFTER.items()]
    return "\n".join(("| the first call | repeatable action | other | irreversible |", "|---|---|---|---|", *rows))
