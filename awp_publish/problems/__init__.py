"""Every refusal and failure of a call, as one tree of exceptions.

    Problem
    ├── requests.py   the envelope or the request around it was wrong
    ├── guards.py     a gate in front of the handler said no
    ├── handlers.py   the input does not match, the handler refused, failed or took too long
    ├── jobs.py       a background job is not there, or ended without a result
    └── pages.py      a page cannot be given in the format that was asked for

A problem knows what happened; the door that caught it knows how to say it (problem+json, MCP `isError`, ...). `ALL`
lists the concrete classes, from which the documentation, agent.json's `errors` and the problem pages are made.
"""

from awp_publish.problems.guards import (
    AnswerNotKept as AnswerNotKept,
    AuthenticationRequired as AuthenticationRequired,
    AuthExpired as AuthExpired,
    ConfirmationExpired as ConfirmationExpired,
    ConfirmationForeign as ConfirmationForeign,
    ConfirmationMismatch as ConfirmationMismatch,
    ConfirmationRequired as ConfirmationRequired,
    ConfirmationSpent as ConfirmationSpent,
    ConfirmationTampered as ConfirmationTampered,
    CrossSiteCookies as CrossSiteCookies,
    ForeignHost as ForeignHost,
    IdempotencyKeyInFlight as IdempotencyKeyInFlight,
    IdempotencyKeyReused as IdempotencyKeyReused,
    InsufficientScope as InsufficientScope,
    InvalidCredentials as InvalidCredentials,
    InvalidIdempotencyKey as InvalidIdempotencyKey,
    OutcomeUnknown as OutcomeUnknown,
    PrerequisiteRequired as PrerequisiteRequired,
    RateLimited as RateLimited,
    StoreUnavailable as StoreUnavailable,
    TemporarilyUnavailable as TemporarilyUnavailable,
)
from awp_publish.problems.handlers import (
    HandlerFailed as HandlerFailed,
    HandlerRedirected as HandlerRedirected,
    HandlerTimeout as HandlerTimeout,
    HandlerUnavailable as HandlerUnavailable,
    InvalidInput as InvalidInput,
    InvalidOutput as InvalidOutput,
    Refused as Refused,
)
from awp_publish.problems.jobs import (
    JobCancelled as JobCancelled,
    JobEnded as JobEnded,
    JobInterrupted as JobInterrupted,
    JobQueueFull as JobQueueFull,
    TooManyJobs as TooManyJobs,
    UnknownJob as UnknownJob,
)
from awp_publish.problems.pages import (
    InvalidUrl as InvalidUrl,
    PageNotFound as PageNotFound,
)
from awp_publish.problems.problem import (
    MAX_VIOLATIONS as MAX_VIOLATIONS,
    DeclarationError as DeclarationError,
    Problem as Problem,
    Violation as Violation,
    code_of as code_of,
    shorten as shorten,
    slug_of as slug_of,
)
from awp_publish.problems.requests import (
    AgentMismatch as AgentMismatch,
    BodyTimeout as BodyTimeout,
    BodyTooLarge as BodyTooLarge,
    EnvelopeNotAnObject as EnvelopeNotAnObject,
    InvalidEnvelope as InvalidEnvelope,
    MethodNotAllowed as MethodNotAllowed,
    MissingInput as MissingInput,
    NotAcceptable as NotAcceptable,
    NotJson as NotJson,
    UnknownAgent as UnknownAgent,
    UnknownOperation as UnknownOperation,
    UnsupportedMediaType as UnsupportedMediaType,
)

ALL: tuple[type[Problem], ...] = (
    NotJson,
    EnvelopeNotAnObject,
    InvalidEnvelope,
    MissingInput,
    AgentMismatch,
    UnknownAgent,
    UnknownOperation,
    MethodNotAllowed,
    NotAcceptable,
    UnsupportedMediaType,
    BodyTooLarge,
    BodyTimeout,
    AuthenticationRequired,
    InvalidCredentials,
    AuthExpired,
    InsufficientScope,
    ForeignHost,
    CrossSiteCookies,
    RateLimited,
    InvalidIdempotencyKey,
    IdempotencyKeyReused,
    IdempotencyKeyInFlight,
    OutcomeUnknown,
    AnswerNotKept,
    ConfirmationRequired,
    ConfirmationExpired,
    ConfirmationTampered,
    ConfirmationForeign,
    ConfirmationSpent,
    ConfirmationMismatch,
    PrerequisiteRequired,
    TemporarilyUnavailable,
    StoreUnavailable,
    InvalidInput,
    Refused,
    HandlerRedirected,
    HandlerFailed,
    HandlerUnavailable,
    HandlerTimeout,
    InvalidOutput,
    TooManyJobs,
    JobQueueFull,
    UnknownJob,
    JobEnded,
    JobCancelled,
    JobInterrupted,
    InvalidUrl,
    PageNotFound,
)
