"""`About`: the facts that a site publishes about itself."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from awp_publish.model import EXTENDED_DOCUMENTS, Workflow
from awp_publish.problems import DeclarationError
from awp_publish.schema.options import (
    Link,
    Option,
    Text,
    check_id,
    check_json,
    check_text,
    matching,
    read_moment,
    strict,
    unpack,
)

check_email: Final = matching(r"[^@\s]+@[^@\s]+", "{!r} is not an e-mail address")


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
        Text | None, Option("the content's licence, as an SPDX identifier or URL", "MCP and A2A manifests of AWAS")
    ] = None
    updated: Annotated[
        datetime | date | str | None,
        PlainValidator(read_moment),
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
    leave_out: Annotated[
        Sequence[Text], Option('[documents](documents.md) that are not published: `["llms_txt", "ard"]`', "nothing")
    ] = ()
    extensions: Annotated[
        Extensions, Option("[members of your own](documents.md#members-of-your-own)", "all documents")
    ] = field(default_factory=dict)
