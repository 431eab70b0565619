"""Places in an actions.json that several checks look at, as patterns (`checks.places`)."""

from typing import Final

from awp_publish.maps.rules import TARGETS as TARGETS

WORKFLOWS: Final = "/tools/[]/workflow"
STEPS: Final = "/tools/[]/workflow/steps/[]"
SCHEMAS: Final = (
    "/tools/[]/input_schema",
    "/tools/[]/result_schema",
    "/tools/[]/x_actions/result_schema",
    "/signals/[]/payload",
    "/state_projections/[]/snapshot/output_schema",
)
SOURCES: Final = (
    "/tools/[]/x_actions/source",
    "/signals/[]/source",
    "/context/[]/source",
    "/attachments/[]/source",
    "/states/[]/source",
    "/checks/[]/source",
    "/prompt/source",
)
FILES: Final = (
    *(f"{source}/files/[]" for source in SOURCES),
    "/x_actions/files/[]/path",
    "/attachments/[]/affordance/opens/arguments/html_source",
)
NAMES: Final = (
    ("/tools/[]", "name"),
    ("/states/[]", "name"),
    ("/states/[]/diagnostics/[]", "name"),
    ("/transitions/[]", "name"),
    ("/signals/[]", "name"),
    ("/state_projections/[]", "name"),
    ("/state_projections/[]/summaries/[]", "name"),
    ("/context/[]", "id"),
    ("/attachments/[]", "id"),
    ("/checks/[]", "id"),
    ("/imports/[]", "id"),
    ("/state_projections/[]/snapshot/extract/[]", "id"),
)
"""Names and ids, which are required and must be safe identifiers."""
EXTRACT: Final = "/state_projections/[]/snapshot/extract/[]"
