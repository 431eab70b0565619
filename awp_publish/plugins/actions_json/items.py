"""Items of the Actions Bridge Protocol: their kinds and limits, and how they are read and written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

import orjson

from awp_publish.calls.call import RECEIPT, REPLAYED
from awp_publish.http.calling import Dialect
from awp_publish.http.exchange import header_members
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.sockets import MAX_PENDING, Frame
from awp_publish.http.streams import StreamLimits
from awp_publish.http.strict_json import parse_json
from awp_publish.maps.failures import CODES, Code, RuntimeFailure
from awp_publish.model import JsonObject
from awp_publish.plugins.actions_json.runtimes import PairedRuntime, ReachableRuntime
from awp_publish.problems import NotJson, Problem
from awp_publish.schema import media

PROTOCOL: Final = "bridge"
VERSION: Final = "1"

CONNECTIONS: Final = StreamLimits(most=10_000, of_unknown=8_000, of_address=500, of_caller=500)
"""Connections of a process: visitors' tabs have one each."""

SEVERITIES: Final = ("info", "minor", "major", "critical")
MAX_MAPS: Final = 100
"""Maximum cached maps; callers with different scopes may see different actions."""

ANSWERS: Final = ("action_call_output", "action_error")
ITEMS: Final[Mapping[str, tuple[str, str]]] = {
    "runtime_ready": (
        "runtime_id* url* runtime_key authorization_id extension_version manifest{protocol,version,tools} host title "
        "capabilities",
        "runtime",
    ),
    "runtime_status": ("runtime_id* url states attachments observed_at call{step_id,mutating} events", "runtime"),
    "action_call": (
        "call_id* name* arguments* runtime_id target_runtime_id target{runtime_id,runtime_key,authorization_id} "
        "authorization_id target_url_contains target_title_contains timeout_ms confirmation receipts idempotency_key "
        "session",
        "agent, and the bridge to the runtime",
    ),
    "action_call_output": ("call_id* runtime_id* output* steps headers", "runtime, and the bridge to the agent"),
    "dom_event": (
        "event_id* runtime_id* name* payload* event url observed_at previous_call_id",
        "runtime, and the bridge to agents",
    ),
    "action_error": ("error*{code*,message,severity,recoverable,evidence} call_id runtime_id", "either"),
}
"""Items with their members (a star marks required ones) and their senders."""

MAX_ID: Final = 256
MAX_URL: Final = 8_192
MAX_RUNTIMES: Final = 16
"""Maximum runtimes per connection and per owner."""
MAX_EVENTS: Final = 4 * MAX_PENDING
"""Unsent items of an agent's connection above which events for it are dropped."""
DRIVEN: Final = "page.driver"
"""The capability of our own script, which runs single steps; the runner is in this process."""
REFUSAL_HEADERS: Final = ("www-authenticate", "retry-after", "ratelimit", "ratelimit-policy", "link", "location")
"""Headers of a refusal that are passed on to the agent."""
ANSWER_HEADERS: Final = (RECEIPT, REPLAYED, media.HEADER)
"""Headers of an answer that are passed on to the agent."""
IN_PROCESS: Final = "in_process"
"""The runtime id that stands for the caller's own page in this process."""

MEMBERS: Final = ("confirmation", "receipts", "idempotency_key", "session")
"""Members that may accompany the arguments of a call, as in the envelopes of other doors."""


DIALECT: Final = Dialect(
    input="arguments",
    recoveries={
        "CONFIRMATION_REQUIRED": (
            "Show confirmation.summary to your user. Only if they agree, send the same action_call with a new call_id "
            "and confirmation.token as confirmation beside arguments."
        ),
        "PREREQUISITE_REQUIRED": (
            "Call the actions listed in missing, unless they have already succeeded, then send this call again with a "
            "new call_id. If you are not authenticated and use another connection, add receipts beside arguments: a "
            "list of the awp-receipt in the headers of each of their answers. Do not repeat a call only to get its "
            "receipt."
        ),
    },
)

STATUSES: Final[Mapping[str, int]] = {
    "unknown_action": 404,
    "invalid_input": 422,
    "permission_denied": 403,
    "ambiguous_runtime": 409,
    "runtime_not_found": 404,
    "state_mismatch": 409,
    "unsafe_state": 409,
    "target_not_found": 409,
    "drift_detected": 409,
    "handler_timeout": 504,
    "runtime_not_ready": 503,
}
"""HTTP statuses of codes, for doors with statuses; 502 for any other code."""


def read_item(frame: Frame) -> JsonObject:
    """Read an item. Raises RuntimeFailure `invalid_input`."""
    try:
        item = parse_json(frame if isinstance(frame, bytes) else frame.encode("utf-8", "surrogatepass"))
    except NotJson as problem:
        raise invalid(problem.detail.replace("The body", "The message", 1)) from problem
    if not isinstance(item, dict):
        raise invalid("A message must be one object.")
    return item


def invalid(message: str, **evidence: object) -> RuntimeFailure:
    """Return the failure for input that cannot be parsed or is not valid."""
    return RuntimeFailure("invalid_input", message, evidence)


def read_text(item: Mapping[str, object], name: str, longest: int = MAX_ID, *, where: str = "") -> str | None:
    """Read an optional text. Raises RuntimeFailure `invalid_input`."""
    value = item.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise invalid(f"{where}{name} must be text of 1 to {longest} characters.", member=f"{where}{name}")
    return value


def require_text(item: Mapping[str, object], name: str, longest: int = MAX_ID) -> str:
    """Read a required text. Raises RuntimeFailure `invalid_input`."""
    text = read_text(item, name, longest)
    if text is None:
        raise invalid(f"Missing required member: {name}", member=name)
    return text


def require_object(item: Mapping[str, object], name: str) -> JsonObject:
    """Read a required object. Raises RuntimeFailure `invalid_input`."""
    value = item.get(name)
    if not isinstance(value, dict):
        words = f"Missing required member: {name}" if value is None else f"{name} must be an object."
        raise invalid(words, member=name)
    return value


def error_item(failure: RuntimeFailure, call_id: str | None = None, runtime_id: str | None = None) -> JsonObject:
    """Return the action_error for a failure."""
    about = {"call_id": call_id, "runtime_id": runtime_id}
    return {
        "type": "action_error",
        **{name: value for name, value in about.items() if value is not None},
        "error": failure.describe(),
    }


def write_item(item: JsonObject) -> str:
    """Serialize an item. If JSON cannot represent it, return an action_error instead."""
    try:
        return orjson.dumps(item).decode()
    except (TypeError, ValueError):
        failure = RuntimeFailure("invalid_result", "The answer cannot be written as JSON.", recoverable=False)
        call_id = item.get("call_id")
        return orjson.dumps(error_item(failure, call_id if isinstance(call_id, str) else None)).decode()


def read_error(item: JsonObject) -> RuntimeFailure:
    """Read a runtime's action_error. A code that the protocol does not define is kept in the evidence."""
    error = require_object(item, "error")
    code, message = require_text(error, "code"), str(error.get("message", ""))[:2_000]
    evidence, severity = error.get("evidence"), error.get("severity")
    details = dict(evidence) if isinstance(evidence, dict) else {}
    if code not in CODES:
        details.setdefault("code", code)
    return RuntimeFailure(
        cast(Code, code if code in CODES else "handler_failed"),
        message or "The runtime did not report what was wrong.",
        details,
        severity=severity if isinstance(severity, str) and severity in SEVERITIES else "major",
        recoverable=error.get("recoverable") is True,
    )


def failure_of(status: int, problem: Mapping[str, object]) -> RuntimeFailure:
    """Convert a problem of the site, given as problem+json, to a failure."""
    slug = str(problem.get("code") or "")
    code: Code = "handler_failed"
    if slug in ("INVALID_INPUT", "INVALID_ENVELOPE", "MISSING_INPUT", "BODY_TOO_LARGE", "INVALID_IDEMPOTENCY_KEY"):
        code = "invalid_input"
    elif slug in ("UNKNOWN_AGENT", "UNKNOWN_OPERATION", "UNKNOWN_ACTION"):
        code = "unknown_action"
    elif slug in ("HANDLER_TIMEOUT", "TIMEOUT"):
        code = "handler_timeout"
    elif slug == "INVALID_OUTPUT":
        code = "invalid_result"
    elif status in (401, 403, 428, 429) or slug.startswith(("CONFIRMATION_", "PREREQUISITE_", "AUTH", "SESSION_")):
        code = "permission_denied"
    evidence = {name: value for name, value in problem.items() if name not in ("type", "title", "instance")}
    evidence |= {"code": slug, "status": status}
    if isinstance(confirmation := problem.get("confirmation"), Mapping):
        evidence |= {name: confirmation[name] for name in ("token", "summary") if name in confirmation}
    detail = problem.get("detail") or problem.get("title") or "The action did not succeed."
    return RuntimeFailure(code, str(detail), evidence, recoverable=code != "invalid_result")


def refusal_of(
    problem: Problem, renderer: ProblemRenderer, request_id: str = "", *, is_repeatable: bool = False
) -> RuntimeFailure:
    """Convert a problem to a failure, with the headers that concern its caller.

    It is not recoverable if the action may have taken effect and must not be repeated blindly.
    """
    described = renderer.describe(problem, request_id=request_id)
    headers = header_members(pair for pair in problem.headers if pair[0].lower() in REFUSAL_HEADERS)
    after = headers.get("retry-after", "")
    described |= {"retry_after_ms": int(after) * 1000} if after.isdecimal() else {}
    failure = failure_of(problem.status, described | ({"headers": headers} if headers else {}))
    has_changed_nothing = problem.is_refusal or problem.status < 500 or problem.status == 503
    failure.recoverable = failure.recoverable and (has_changed_nothing or is_repeatable)
    return failure


@dataclass(frozen=True, slots=True)
class Selectors:
    """Conditions on the runtime that a call is for. All that are given have to be met."""

    runtime_id: str | None = None
    runtime_key: str | None = None
    authorization_id: str | None = None
    url_contains: str | None = None
    title_contains: str | None = None

    @classmethod
    def read(cls, item: JsonObject) -> "Selectors":
        """Read the selectors of an action_call. Raises RuntimeFailure `invalid_input`."""
        target = item.get("target")
        if target is not None and not isinstance(target, dict):
            raise invalid("target must be an object.", member="target")
        inner: JsonObject = target or {}
        ids = {
            read_text(item, "runtime_id"),
            read_text(item, "target_runtime_id"),
            read_text(inner, "runtime_id", where="target."),
        } - {None}
        if len(ids) > 1:
            words = "runtime_id, target_runtime_id and target.runtime_id name different runtimes."
            raise invalid(words, member="runtime_id")
        return cls(
            next(iter(ids), None),
            read_text(inner, "runtime_key", where="target."),
            read_text(item, "authorization_id") or read_text(inner, "authorization_id", where="target."),
            read_text(item, "target_url_contains", MAX_URL),
            read_text(item, "target_title_contains", MAX_URL),
        )

    def fit(self, runtime: ReachableRuntime) -> bool:
        """Return True if a runtime matches. Whether the caller may reach it is not checked here."""
        paired = runtime if isinstance(runtime, PairedRuntime) else None
        key = None if paired is None else paired.key
        names = {runtime.id, IN_PROCESS if paired is None else paired.authorization_id}
        return (
            (self.runtime_id is None or self.runtime_id in names)
            and (self.runtime_key is None or self.runtime_key == key)
            and (self.url_contains is None or self.url_contains in runtime.url)
            and (self.title_contains is None or self.title_contains in runtime.title)
        )
