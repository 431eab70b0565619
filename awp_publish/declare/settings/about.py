"""`About`: the facts that a site publishes about itself."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from awp_publish.model import EXTENDED_DOCUMENTS, Security, Workflow
from awp_publish.problems import DeclarationError
from awp_publish.schema.options import (
    Link,
    Option,
    Text,
    check_id,
    check_json,
    check_link,
    check_text,
    matching,
    strict,
    unpack,
)

check_email: Final = matching(r"[^@\s]+@[^@\s]+", "{!r} is not an e-mail address")


def read_updated(value: object) -> datetime | None:
    """Read when actions last changed: a datetime, a date or ISO 8601 text; without a time zone it is UTC."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f'{value!r} is not a date; write it as "2026-03-31"') from error
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if not isinstance(moment, datetime):
        raise ValueError(f"must be a date or a datetime, not {value!r}")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def check_provenance(value: Mapping[str, str]) -> Mapping[str, str]:
    """Refuse unknown members, and values with paths of a machine or credentials, because the map is public."""
    members = [f"{done}_{what}" for done in ("created", "updated", "reviewed") for what in ("by", "at")]
    for name, text in value.items():
        if name not in (*members, "source", "revision"):
            raise ValueError(f"{name!r} is not one of {', '.join(members)}, source, revision")
        if re.match(r"[/\\~]|[A-Za-z]:[/\\]|file:", text) or re.match(r"[A-Za-z][\w+.-]*://[^/]*@", text):
            raise ValueError(f"{name}: {text!r} is not for the public; name it without the path or the credentials")
    return value


OWN_EXTENSIONS: Final = frozenset(
    {"x-credentials", "x-methods", "x-one-of", "x-security-schemes", "x-tags", "x-version"}
)
"""Members of ours in documents: an owner's of the same name would say something else under it."""


def check_extensions(value: Mapping[str, object]) -> Mapping[str, object]:
    documents = ", ".join(f'"{name}"' for name in sorted(EXTENDED_DOCUMENTS))
    for name, members in value.items():
        if name in EXTENDED_DOCUMENTS and not isinstance(members, Mapping):
            raise ValueError(f"{name!r}: must be a dictionary of the members that this document has besides")
        if name in OWN_EXTENSIONS:
            raise ValueError(f"{name!r}: is a member that documents have already; give yours another name")
        if name not in EXTENDED_DOCUMENTS and not re.fullmatch(r"x-\S+", name):
            raise ValueError(
                f"{name!r}: extension names begin with x- (AWAS, section Extensions); members of one document go "
                f"under its name, which is one of {documents}"
            )
    return check_json(value)


def check_workflow(value: Workflow) -> Workflow:
    check_id(value.id)
    check_text(value.name)
    if not value.steps:
        raise ValueError(f'workflow "{value.id}" has no steps; name the actions in their order')
    return value


def check_workflows(value: Sequence[Workflow]) -> Sequence[Workflow]:
    ids = [workflow.id for workflow in value]
    for identifier in ids:
        if ids.count(identifier) > 1:
            raise ValueError(f'two workflows have the id "{identifier}"')
    return value


def check_steps(workflows: Iterable[Workflow], actions: Container[str]) -> None:
    """Raise DeclarationError for a workflow with a step that is none of the site's actions."""
    for workflow in workflows:
        for step in workflow.steps:
            if step not in actions:
                wrong = f'about.workflows: "{workflow.id}" names the unknown action "{step}".'
                raise DeclarationError("site", wrong)


Extensions: TypeAlias = Annotated[Mapping[str, object], AfterValidator(check_extensions)]


def read_security(value: object) -> object:
    """Parse the time at which it expires, as other dates are parsed."""
    members = unpack(value)
    if isinstance(members, Mapping) and "expires" in members:
        return {**members, "expires": read_updated(members["expires"])}
    return members


def check_security(value: Security) -> Security:
    """Check that there is a contact and an expiry time in the future (RFC 9116 sections 2.5.3 and 2.5.5)."""
    for contact in value.contact:
        if not re.fullmatch(r"(?:mailto:|tel:|https://)[!-~]+|/[!-~]*", contact):
            raise ValueError(f'contact: {contact!r} must be "mailto:...", "tel:...", "https://..." or a path')
    if not value.contact:
        raise ValueError('contact is required, such as ["mailto:security@shop.example"]')
    if not isinstance(value.expires, datetime):
        raise ValueError("expires must be a date or a datetime")
    for language in value.languages:
        if not re.fullmatch(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*", language):
            raise ValueError(f'languages: {language!r} is not a language tag, such as "en"')
    if value.policy is not None:
        check_link(value.policy)
    return value


@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Facts that a site publishes about itself besides its name. None of them changes what it does."""

    version: Annotated[
        str,
        Field(pattern=r"^\d+\.\d+(\.\d+)?$"),
        Option('version of what you publish, `"1.0"` or `"2.1.3"`', "cards, bridge manifests, AWAS `x-version`"),
    ] = "1.0"
    email: Annotated[
        Annotated[str, AfterValidator(check_email)] | None, Option("the contact's email address", "AWAS `contact`")
    ] = None
    contact: Annotated[Link | None, Option("a contact page, as a path or URL", "AWAS `contact`")] = None
    documentation: Annotated[
        Link | None, Option("a page about the site, as a path or URL", "MCP and A2A manifests of AWAS")
    ] = None
    license: Annotated[
        Text | None,
        Option("the content's licence, as an SPDX identifier or URL", "MCP and A2A manifests of AWAS"),
    ] = None
    updated: Annotated[
        datetime | date | str | None,
        PlainValidator(read_updated),
        Option(
            "when the actions last changed: a date, a datetime or ISO 8601 text; UTC unless it says otherwise",
            "AWAS 1.1 `lastUpdated`, `Last-Modified`",
        ),
    ] = None
    hints: Annotated[Mapping[Text, Text], Option("advice for planning: texts by name", "agent.json `agent_hints`")] = (
        field(default_factory=dict)
    )
    workflows: Annotated[
        Sequence[Annotated[Workflow, BeforeValidator(unpack), AfterValidator(check_workflow)]],
        AfterValidator(check_workflows),
        Option(
            "`Workflow(id, name, steps, description)`: action ids that reach a goal in this order",
            "AWAS 1.1 `workflows`",
        ),
    ] = ()
    provenance: Annotated[
        Mapping[str, Text],
        AfterValidator(check_provenance),
        Option(
            "the origin of the map of your pages: `created_by`, `updated_by` and `reviewed_by`, each with "
            "`..._at`, `source`, `revision`",
            "actions.json `provenance`",
        ),
    ] = field(default_factory=dict)
    security: Annotated[
        Annotated[Security, BeforeValidator(read_security), AfterValidator(check_security)] | None,
        Option(
            '`Security(contact=["mailto:..."], expires="2027-06-30", policy, languages)`',
            "`/.well-known/security.txt`",
        ),
    ] = None
    leave_out: Annotated[
        Sequence[Text],
        Option('[documents](documents.md) that are not published: `["llms_txt", "ard"]`', "nothing"),
    ] = ()
    extensions: Annotated[
        Extensions,
        Option(
            "[members of your own](documents.md#members-of-your-own)",
            "all documents",
        ),
    ] = field(default_factory=dict)
