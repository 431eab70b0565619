"""What a site owner may say, and the words in which a mistake is refused.

The `TypedDict`s below are at once the signatures of `Site(...)`, `@site.action(...)` and their siblings (editors
complete them, type checkers check them) and the pydantic schemas that check them at run time. This is the edge:
behind it stand the frozen values of `values.py`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    Strict,
    TypeAdapter,
    with_config as pydantic_config,
)
from typing_extensions import TypedDict

from awp_publish.model import (
    ActionType,
    Authentication,
    Browsing,
    Capabilities,
    Contact,
    Execution,
    Idempotency,
    Intent,
    JsonObject,
    Paths,
    RateLimit,
    Result,
    Security,
    Sensitivity,
    SideEffect,
    Summary,
    Workflow,
)
from awp_publish.options.addresses import (
    check_forwarded,
    check_link,
    check_origin,
    check_path,
    check_paths,
    check_proxy,
    check_queue,
    check_url,
)
from awp_publish.options.readings import (
    check_authentication,
    check_browsing,
    check_contact,
    check_duration,
    check_error_code,
    check_extensions,
    check_id,
    check_json,
    check_kind,
    check_result,
    check_selector,
    check_text,
    check_token,
    check_workflow,
    check_workflows,
    read_entity,
    read_idempotency,
    read_rate_limit,
    read_secret_keys,
    read_selectors,
    read_summary,
    read_updated,
    unpack,
)
from awp_publish.options.refusals import check

__all__ = [
    "NAMES",
    "URL",
    "ActionOptions",
    "AgentOptions",
    "PageOptions",
    "SiteOptions",
    "check",
    "check_action",
    "check_agent",
    "check_identifier",
    "check_page",
    "check_site",
]

Flag: TypeAlias = Annotated[bool, Strict()]
Seconds: TypeAlias = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
Text: TypeAlias = Annotated[str, AfterValidator(check_text)]
Id: TypeAlias = Annotated[str, AfterValidator(check_id)]
Link: TypeAlias = Annotated[str, AfterValidator(check_link)]
Selector: TypeAlias = Annotated[str, AfterValidator(check_selector)]
Extensions: TypeAlias = Annotated[Mapping[str, object], AfterValidator(check_extensions)]
RateLimitOption: TypeAlias = Annotated[RateLimit | str | Mapping[str, object], PlainValidator(read_rate_limit)]
IdempotencyOption: TypeAlias = Annotated[
    bool | str | Mapping[str, object] | Idempotency, PlainValidator(read_idempotency)
]
SelectorsOption: TypeAlias = Annotated[
    Literal["data-awas", "data-ai"] | Mapping[str, str], PlainValidator(read_selectors)
]
EntityOption: TypeAlias = Annotated[type | Mapping[str, str], PlainValidator(read_entity)]
AuthenticationOption: TypeAlias = Annotated[
    Authentication, BeforeValidator(unpack), AfterValidator(check_authentication)
]
ContentType: TypeAlias = Literal["application/json", "application/x-www-form-urlencoded", "multipart/form-data"]
Duration: TypeAlias = Annotated[str, AfterValidator(check_duration)]
SecretKeysOption: TypeAlias = Annotated[str | Sequence[str], PlainValidator(read_secret_keys)]
SummaryOption: TypeAlias = Annotated[Summary, PlainValidator(read_summary)]
WorkflowOption: TypeAlias = Annotated[Workflow, BeforeValidator(unpack), AfterValidator(check_workflow)]

_STRICT: Final = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


@pydantic_config(_STRICT)
class SiteOptions(TypedDict, total=False):
    """Everything a `Site` may say besides name, description and url. See docs/site.md for one line on each."""

    version: Annotated[str, Field(pattern=r"^\d+\.\d+$")]
    contact: Annotated[Contact, BeforeValidator(unpack), AfterValidator(check_contact)]
    authentication: AuthenticationOption
    rate_limit: RateLimitOption
    capabilities: Annotated[Capabilities, BeforeValidator(unpack)]
    entities: Mapping[Id, EntityOption]
    errors: Mapping[Annotated[str, AfterValidator(check_error_code)], Text]
    hints: Mapping[Text, Text]
    security: Annotated[Security, BeforeValidator(unpack)]
    workflows: Annotated[Sequence[WorkflowOption], AfterValidator(check_workflows)]
    documentation: Link
    license: Text
    updated: Annotated[datetime, PlainValidator(read_updated)]
    extensions: Extensions
    paths: Annotated[Paths, BeforeValidator(unpack), AfterValidator(check_paths)]
    doors: Sequence[Literal["mcp", "a2a", "awp"]]
    browsing: Annotated[Browsing, BeforeValidator(unpack), AfterValidator(check_browsing)]
    status_endpoint: Link
    timeout: Seconds
    max_body_bytes: Annotated[int, Strict(), Field(gt=0)]
    allow_origins: Sequence[Annotated[str, AfterValidator(check_origin)]]
    list_only_allowed: Flag
    trust_outer_middleware: Flag
    store: object
    secret_keys: SecretKeysOption
    authenticate: object
    trusted_proxies: Sequence[Annotated[str, AfterValidator(check_proxy)]]
    forwarded: Annotated[str, AfterValidator(check_forwarded)]
    enforce_prerequisites: Flag
    confirmation_lifetime: Duration
    receipt_lifetime: Duration
    job_queue: Annotated[str, AfterValidator(check_queue)]
    job_concurrency: Annotated[int, Strict(), Field(gt=0)]
    job_results: Duration
    status_interval: Duration
    pages: Flag | None
    page_formats_in_query: Flag
    page_formats_in_shared_cache: Flag
    log_inputs: Flag


@pydantic_config(_STRICT)
class ActionOptions(TypedDict, total=False):
    """Everything an action may say. See docs/actions.md for one line on each."""

    name: Text
    description: Text
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: Annotated[str, AfterValidator(check_path)]
    inputs: Annotated[object, AfterValidator(check_kind)]
    outputs: Annotated[object, AfterValidator(check_kind)]
    content_type: ContentType
    agent: str
    operation: Annotated[str, AfterValidator(check_token)]
    type: ActionType
    intent: Intent
    side_effect: SideEffect
    tags: Sequence[Text]
    examples: Sequence[Annotated[JsonObject, AfterValidator(check_json)]]
    selector: Selector
    selectors: SelectorsOption
    result: Annotated[Result, BeforeValidator(unpack), AfterValidator(check_result)]
    auth_required: Flag
    scopes: Sequence[Text]
    rate_limit: RateLimitOption
    idempotency: IdempotencyOption
    sensitivity: Sensitivity
    reversible: Flag
    requires_human_confirmation: Flag
    confirmation_summary: SummaryOption
    enforce_prerequisites: Flag
    preconditions: Sequence[Text]
    depends_on: Sequence[str]
    preview_url: Link
    dry_run: Flag
    execution: Execution
    timeout: Seconds
    extensions: Extensions


@pydantic_config(_STRICT)
class AgentOptions(ActionOptions, total=False):
    """What an agent says about itself (WoA section 4.1); an action's options hold for each of its operations."""

    version: Text
    capabilities: Sequence[Text]
    metadata: Annotated[Mapping[str, object], AfterValidator(check_json)]


@pydantic_config(_STRICT)
class PageOptions(TypedDict, total=False):
    """What a page may say about itself. See docs/pages.md."""

    title: Text
    description: Text


NAMES: Final[TypeAdapter[Sequence[str]]] = TypeAdapter(Sequence[Text])
URL: Final = TypeAdapter(Annotated[str, AfterValidator(check_url)])
_TEXT: Final = TypeAdapter(Text)
_ID: Final = TypeAdapter(Id)
_SITE: Final = TypeAdapter(SiteOptions)
_ACTION: Final = TypeAdapter(ActionOptions)
_AGENT: Final = TypeAdapter(AgentOptions)
_PAGE: Final = TypeAdapter(PageOptions)
_PATH: Final = TypeAdapter(Annotated[str, AfterValidator(check_path)])


def check_site(name: object, description: object, options: SiteOptions) -> tuple[str, str, SiteOptions]:
    """What was given to `Site(...)`, read. Raises DeclarationError that names the field."""
    return (
        check("site", _TEXT, name, "name"),
        check("site", _TEXT, description, "description"),
        check("site", _SITE, options, known=SiteOptions.__annotations__),
    )


def check_action(subject: str, options: ActionOptions) -> ActionOptions:
    """An action's options, read. Raises DeclarationError that names the subject and the field."""
    return check(subject, _ACTION, options, known=ActionOptions.__annotations__)


def check_agent(subject: str, options: AgentOptions) -> AgentOptions:
    """An agent's options, read. Raises DeclarationError that names the subject and the field."""
    return check(subject, _AGENT, options, known=AgentOptions.__annotations__)


def check_page(subject: str, path: object, options: PageOptions) -> PageOptions:
    """A page's options, read; `path` is None where it is not given. Raises DeclarationError that names the field."""
    if path is not None:
        check(subject, _PATH, path, "path")
    return check(subject, _PAGE, options, known=PageOptions.__annotations__)


def check_identifier(subject: str, identifier: object) -> str:
    """An action's or an agent's id. Raises DeclarationError."""
    return check(subject, _ID, identifier, "id")
