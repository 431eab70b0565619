"""The frozen facts from which everything is derived: `Action`, `Agent`, `SiteFacts`, `Catalog`, and their values.

Protocol files read a `Catalog` and nothing else. Nothing is validated here: `settings.py` refuses mistakes before these
values are made. JSON Schemas are JSON Schema 2020-12 with their own `$defs`, so that each can stand alone.
"""

from awp_publish.model.actions import (
    IN_ANOTHER_FORMAT as IN_ANOTHER_FORMAT,
    QUERY_METHODS as QUERY_METHODS,
    ROUTE_CALL as ROUTE_CALL,
    Action as Action,
    Agent as Agent,
    Arrival as Arrival,
    Asker as Asker,
    LeftOut as LeftOut,
    Parameter as Parameter,
    RouteCredential as RouteCredential,
    Target as Target,
)
from awp_publish.model.catalog import (
    Catalog as Catalog,
    DoorFacts as DoorFacts,
    OpenApi as OpenApi,
    Paths as Paths,
    SiteFacts as SiteFacts,
    snake_case as snake_case,
    title_of as title_of,
    with_addresses as with_addresses,
    without_accents as without_accents,
)
from awp_publish.model.listing import Listing as Listing, listing_of as listing_of
from awp_publish.model.offers import (
    MAX_SKILL_DESCRIPTION as MAX_SKILL_DESCRIPTION,
    MAX_SKILL_NAME as MAX_SKILL_NAME,
    SKILL_FILE as SKILL_FILE,
    Complete as Complete,
    Event as Event,
    Prompt as Prompt,
    PromptArgument as PromptArgument,
    Skill as Skill,
)
from awp_publish.model.pages import Page as Page
from awp_publish.model.values import (
    DEFAULT_OPERATION as DEFAULT_OPERATION,
    DOORS as DOORS,
    EXTENDED_DOCUMENTS as EXTENDED_DOCUMENTS,
    KNOWN as KNOWN,
    OPERATOR as OPERATOR,
    PUBLIC as PUBLIC,
    SAFE_IN_PATH as SAFE_IN_PATH,
    SEGMENT_PATTERN as SEGMENT_PATTERN,
    SEGMENTS_PATTERN as SEGMENTS_PATTERN,
    UNIT_NAMES as UNIT_NAMES,
    ActionType as ActionType,
    Authentication as Authentication,
    Contact as Contact,
    Effect as Effect,
    Execution as Execution,
    Function as Function,
    Idempotency as Idempotency,
    JsonObject as JsonObject,
    Location as Location,
    RateLimit as RateLimit,
    Robots as Robots,
    Security as Security,
    Status as Status,
    Summary as Summary,
    Workflow as Workflow,
    seconds_of as seconds_of,
    utc_text as utc_text,
)

__version__ = "0.1.0"
