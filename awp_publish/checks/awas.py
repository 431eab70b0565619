"""AWAS 1.0 and 1.1: the checks of an `ai-actions.json`."""

from __future__ import annotations

from functools import partial

from awp_publish.checks import awas_inputs as inputs
from awp_publish.checks import awas_rules as rules
from awp_publish.checks import shape
from awp_publish.checks.awas_conformance import SOURCE as CONFORMANCE
from awp_publish.checks.awas_conformance import unmet_levels
from awp_publish.checks.awas_shape import DATA_TYPES, ENUMERATIONS, SCHEMA_1_1, SHAPES, SPEC_1_0
from awp_publish.checks.finding import Check

VALIDATION = f"{SPEC_1_0}, Validation"
PRACTICE = f"{SPEC_1_0}, Best Practices"
TOP_LEVEL = f"{SPEC_1_0}, Top-Level Properties"

CHECKS = (
    # What must be there, and of which type.
    Check(
        "awas-required",
        "error",
        f"{VALIDATION} rule 1; {SCHEMA_1_1}",
        "Members that the claimed version requires are there, at every level.",
        "Add the member.",
        partial(shape.missing, SHAPES),
    ),
    Check(
        "awas-type",
        "error",
        f"{SPEC_1_0}, JSON Manifest Structure; {SCHEMA_1_1}",
        "Members have the type that the specification gives them.",
        "Write a value of that type.",
        partial(shape.mistyped, SHAPES),
    ),
    Check(
        "awas-value",
        "error",
        f"{SPEC_1_0}, JSON Manifest Structure; {SCHEMA_1_1}",
        "Methods, kinds of result, intents, side effects and the like are among the listed values.",
        "Choose one of the values listed.",
        partial(shape.unlisted, ENUMERATIONS),
    ),
    Check(
        "awas-data-type",
        "error",
        f"{VALIDATION} rule 7",
        "The types of parameters are JSON Schema types.",
        "Choose one of the types listed.",
        partial(shape.unlisted, DATA_TYPES),
    ),
    Check(
        "awas-empty",
        "warning",
        f"{PRACTICE} 2",
        "Required texts say something.",
        "Write a text that tells an agent what it needs to know.",
        partial(shape.empty, SHAPES),
    ),
    Check(
        "awas-misspelt",
        "info",
        f"{SPEC_1_0}, Extensions",
        "No unknown member has nearly the name of a known one.",
        "Correct the name.",
        partial(shape.misspelt, SHAPES),
    ),
    Check(
        "awas-extension",
        "info",
        f"{SPEC_1_0}, Extensions",
        'Members of one\'s own begin with "x-".',
        'Put "x-" before the name.',
        partial(shape.unprefixed, SHAPES),
    ),
    # The manifest as a whole.
    Check(
        "awas-version",
        "error",
        f"{SPEC_1_0}, Versioning; {SCHEMA_1_1}",
        "Versions are MAJOR.MINOR, in a 1.0 manifest also MAJOR.MINOR.PATCH.",
        'Write two numbers with a point between, such as "1.0".',
        rules.bad_versions,
    ),
    Check(
        "awas-version-unknown",
        "warning",
        f"{SPEC_1_0}, Versioning",
        "The major version of AWAS is one that these checks know (1).",
        "Findings may be wrong for another version.",
        rules.unknown_versions,
    ),
    Check(
        "awas-one-version",
        "info",
        f"{SPEC_1_0}, Versioning; {SCHEMA_1_1}",
        "Readers of AWAS 1.0 and of 1.1 can both use the manifest.",
        "One manifest can carry the members of both versions.",
        rules.only_one_version,
    ),
    Check(
        "awas-size",
        "warning",
        f"{PRACTICE} 1",
        "The manifest is under 100 KB.",
        "Shorten descriptions, or publish fewer actions.",
        rules.too_large,
    ),
    Check(
        "awas-base-url",
        "error",
        TOP_LEVEL,
        "baseUrl and contact.url are absolute http or https URLs.",
        'Write the whole URL, with "https://".',
        rules.relative_base,
    ),
    Check(
        "awas-url",
        "error",
        f"{VALIDATION} rule 4",
        "URLs are well-formed.",
        "Repair the URL; spaces and the like are written as %20.",
        rules.bad_urls,
    ),
    Check(
        "awas-email",
        "warning",
        TOP_LEVEL,
        "contact.email is an e-mail address.",
        "Write the address alone.",
        rules.bad_email,
    ),
    Check(
        "awas-last-updated",
        "error",
        SCHEMA_1_1,
        "lastUpdated is an ISO 8601 time.",
        'Write it as "2026-01-31T12:00:00Z".',
        rules.bad_timestamp,
    ),
    Check(
        "awas-optional-for",
        "warning",
        SCHEMA_1_1,
        "authentication.optional_for names actions of the manifest.",
        "Name an action by its id.",
        rules.unknown_optional,
    ),
    Check(
        "awas-workflow-id",
        "warning",
        SCHEMA_1_1,
        "The ids of workflows are unique.",
        "Rename one of the workflows.",
        rules.repeated_workflow_ids,
    ),
    Check(
        "awas-workflow-step",
        "info",
        SCHEMA_1_1,
        "Steps of a workflow that look like the id of an action are one.",
        "Name an action by its id, or write a sentence.",
        rules.unknown_steps,
    ),
    # Rate limits.
    Check(
        "awas-rate-window",
        "error",
        f"{VALIDATION} rule 5",
        "Rate limit windows are a positive number followed by s, m, h or d.",
        'Write for instance "1m" or "24h".',
        rules.bad_windows,
    ),
    Check(
        "awas-rate-count",
        "error",
        f"{VALIDATION} rule 5; {SCHEMA_1_1}",
        "Rate limits allow at least one request.",
        "Write a positive whole number, or leave the limit out.",
        rules.bad_counts,
    ),
    Check(
        "awas-rate-incomplete",
        "warning",
        TOP_LEVEL,
        "Rate limits say how many requests and in which time.",
        "Add the member.",
        rules.partial_rate_limits,
    ),
    # Actions.
    Check(
        "awas-unique-id",
        "error",
        f"{VALIDATION} rule 2",
        "The ids of actions are unique.",
        "Rename one of the actions.",
        rules.repeated_action_ids,
    ),
    Check(
        "awas-action-id",
        "error",
        SCHEMA_1_1,
        "In a 1.1 manifest the ids of actions match ^[a-z_][a-z0-9_]*$.",
        "Write the id in snake_case; both versions accept it.",
        rules.bad_ids,
    ),
    Check(
        "awas-id-style",
        "warning",
        f"{PRACTICE} 8",
        "In a 1.0 manifest the ids of actions are in kebab-case (or snake_case).",
        "Write small letters and digits, with hyphens or underscores between words.",
        rules.unusual_ids,
    ),
    Check(
        "awas-selector",
        "error",
        f"{VALIDATION} rule 3",
        "Selectors of actions, parameters, results and pagination are CSS selectors.",
        "Try the selector with document.querySelector in a browser.",
        rules.bad_selectors,
    ),
    Check(
        "awas-path",
        "warning",
        f"{SPEC_1_0}, Action Object Structure",
        'The path and endpoint of an action begin with "/" or are absolute.',
        'Begin with "/", so that it does not depend on the page it is read from.',
        rules.odd_paths,
    ),
    Check(
        "awas-path-parameter",
        "warning",
        f"{SPEC_1_0}, Action Object Structure",
        "Every placeholder in a path has a parameter of that name.",
        "Declare the parameter, or write it the same way in both places.",
        rules.unexplained_placeholders,
    ),
    Check(
        "awas-schema",
        "error",
        SCHEMA_1_1,
        "inputSchema and outputSchema are valid JSON Schemas whose references resolve.",
        "Repair the schema; 2020-12 is the dialect assumed.",
        rules.bad_schemas,
    ),
    Check(
        "awas-side-effect",
        "warning",
        SCHEMA_1_1,
        "In a 1.1 manifest actions that seem to have lasting consequences declare a side effect.",
        'Declare sideEffect "destructive", or "idempotent" where repeating does no harm.',
        rules.understated,
    ),
    Check(
        "awas-effect-contradiction",
        "warning",
        SCHEMA_1_1,
        "Method, intent and side effect of an action agree.",
        "Correct the one that is wrong.",
        rules.contradictory_effects,
    ),
    Check(
        "awas-conformance",
        "error",
        CONFORMANCE,
        "The conformance level claimed is met by every action.",
        "Add what is lacking, or claim a lower level.",
        unmet_levels,
    ),
    Check(
        "awas-format",
        "info",
        f"{SPEC_1_0}, String Formats",
        "String formats are known ones.",
        "Readers ignore a format they do not know.",
        rules.unknown_formats,
    ),
    *inputs.CHECKS,
)
