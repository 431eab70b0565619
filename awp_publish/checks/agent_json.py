"""AWP agent.json 0.1 and 0.2: the checks of an `agent.json`."""

from __future__ import annotations

from functools import partial

from awp_publish.checks import agent_json_references as references
from awp_publish.checks import agent_json_rules as rules
from awp_publish.checks import agent_json_types as types
from awp_publish.checks import shape
from awp_publish.checks.agent_json_shape import ENUMERATIONS, SHAPES, SPEC
from awp_publish.checks.finding import Check

ACTIONS = f"{SPEC} section 9"
TEXTS = tuple(one for one in SHAPES if one.at != "/errors/{}")

CHECKS = (
    Check(
        "agent-json-other-standard",
        "error",
        f"{SPEC} section 5",
        "The document is AWP's, and not another standard's file of the same name.",
        "Serve the other document at its own place, and AWP's at /agent.json.",
        rules.other_standard,
        decisive=True,
    ),
    # What must be there, and of which type.
    Check(
        "agent-json-required",
        "error",
        f"{SPEC} sections 5 to 10",
        "Required members are there, at every level; since 0.2 `via` replaces endpoint and method.",
        "Add the member.",
        rules.missing,
    ),
    Check(
        "agent-json-type",
        "error",
        f"{SPEC} sections 5 to 13",
        "Members have the type that the specification gives them.",
        "Write a value of that type.",
        partial(shape.mistyped, SHAPES),
    ),
    Check(
        "agent-json-value",
        "error",
        f"{SPEC} sections 6, 7 and 9",
        "Methods, kinds of authentication and pagination, sensitivity and the like are among the listed values.",
        "Choose one of the values listed.",
        partial(shape.unlisted, ENUMERATIONS),
    ),
    Check(
        "agent-json-empty",
        "warning",
        f"{SPEC} section 15",
        "Required texts say something.",
        "Write a text that tells an agent what it needs to know.",
        partial(shape.empty, TEXTS),
    ),
    Check(
        "agent-json-misspelt",
        "info",
        f"{SPEC} section 15",
        "No unknown member has nearly the name of a known one.",
        "Correct the name.",
        partial(shape.misspelt, SHAPES),
    ),
    # The document as a whole.
    Check(
        "agent-json-version",
        "error",
        f"{SPEC} section 4",
        "awp_version is MAJOR.MINOR.",
        'Write "0.1" or "0.2".',
        rules.bad_version,
    ),
    Check(
        "agent-json-version-unknown",
        "warning",
        f"{SPEC} section 4",
        "The major version is one that these checks know (0).",
        "Findings may be wrong for another version.",
        rules.unknown_version,
    ),
    Check(
        "agent-json-newer-member",
        "info",
        f"{SPEC} 0.2 section 16",
        "Members of 0.2 are used only in a document that claims 0.2.",
        'Write awp_version "0.2"; 0.2 allows everything that 0.1 does.',
        rules.newer_members,
    ),
    Check(
        "agent-json-domain",
        "error",
        f"{SPEC} sections 3 and 5",
        "domain is a host name and not a URL.",
        'Write the name alone, such as "books.example".',
        rules.bad_domain,
    ),
    Check(
        "agent-json-url",
        "error",
        f"{SPEC} sections 5.5 and 8",
        "Endpoints are well-formed, and those of protocols are whole URLs.",
        "Repair the URL; spaces and the like are written as %20.",
        rules.bad_urls,
    ),
    Check(
        "agent-json-synthetic",
        "error",
        f"{SPEC} section 14",
        "A synthetic file carries source, generated_by, confidence (0 to 1) and last_verified (a time).",
        "Add what is missing, or remove the members if the site publishes the file itself.",
        rules.undeclared_origin,
    ),
    Check(
        "agent-json-hint",
        "warning",
        f"{SPEC} section 12; its schema at agent-json.org",
        "Hints are texts.",
        "Write a sentence.",
        rules.vague_hints,
    ),
    # Protocols (0.2).
    Check(
        "agent-json-protocol-id",
        "warning",
        f"{SPEC} 0.2 section 5.5",
        "Protocol identifiers are lower case with hyphens.",
        "Rename the entry, and `via` where it is used.",
        rules.bad_protocol_ids,
    ),
    Check(
        "agent-json-protocol-unregistered",
        "info",
        f"{SPEC} 0.2 section 5.5",
        'Protocols are registered, or begin with "x-".',
        'Put "x-" before a name of your own.',
        rules.unregistered_protocols,
    ),
    Check(
        "agent-json-protocol-endpoint",
        "error",
        f"{SPEC} 0.2 section 5.5",
        "Transport and tool protocols say where to reach them.",
        "Add the endpoint.",
        rules.unreachable_protocols,
    ),
    Check(
        "agent-json-via",
        "error",
        f"{SPEC} 0.2 section 5.5",
        "`via` names a declared protocol.",
        "Declare the protocol in protocols.",
        rules.undeclared_via,
    ),
    # Actions.
    Check(
        "agent-json-no-actions",
        "warning",
        ACTIONS,
        "There is at least one action.",
        "Declare what an agent can do.",
        rules.no_actions,
    ),
    Check(
        "agent-json-unique-id",
        "error",
        ACTIONS,
        "The ids of actions are unique.",
        "Rename one of the actions.",
        rules.repeated_ids,
    ),
    Check(
        "agent-json-endpoint",
        "warning",
        ACTIONS,
        'Endpoints begin with "/" or are whole URLs.',
        'Begin with "/".',
        rules.odd_endpoints,
    ),
    Check(
        "agent-json-endpoint-input",
        "warning",
        ACTIONS,
        "Every placeholder in an endpoint has an input of that name.",
        "Declare the input, or write it the same way in both places.",
        rules.unexplained_placeholders,
    ),
    Check(
        "agent-json-poll",
        "warning",
        ACTIONS,
        "Asynchronous actions have a poll_endpoint.",
        "Add the endpoint at which the result can be asked for.",
        rules.without_polling,
    ),
    Check(
        "agent-json-rate-limit",
        "warning",
        ACTIONS,
        "Rate limits are a positive number per unit of time.",
        'Write for instance "30/minute".',
        rules.bad_rate_limits,
    ),
    Check(
        "agent-json-duration",
        "info",
        f"{SPEC} sections 7 and 9",
        "Lifetimes are a positive number followed by a unit of time.",
        'Write for instance "24h" or "7d".',
        rules.bad_durations,
    ),
    Check(
        "agent-json-idempotency",
        "warning",
        ACTIONS,
        "An idempotency contract says whether it holds, and in which field the key goes.",
        "Add the member.",
        rules.idempotency_without_key,
    ),
    Check(
        "agent-json-sensitivity",
        "warning",
        f"{SPEC} section 9, Sensitivity levels; section 15",
        "Actions that seem to have consequences declare their sensitivity.",
        'Declare "destructive" or "irreversible", or "standard" if it is harmless.',
        rules.unstated_sensitivity,
    ),
    Check(
        "agent-json-reversible",
        "error",
        f"{SPEC} section 9, Sensitivity levels",
        "An irreversible action is not called reversible.",
        'Correct one of the two; what can be undone is "destructive" at most.',
        rules.reversible_irreversible,
    ),
    Check(
        "agent-json-confirmation",
        "warning",
        f"{SPEC} section 9, Sensitivity levels",
        "An irreversible action requires confirmation by a person.",
        "Set requires_human_confirmation to true.",
        rules.unconfirmed_irreversible,
    ),
    *types.CHECKS,
    *references.CHECKS,
)
