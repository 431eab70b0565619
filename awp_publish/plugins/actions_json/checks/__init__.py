"""actions.json V1: the checks for a map.

Only workflows and steps are closed (V1, workflow): additional members anywhere else are not reported. The specification
rejects some mistakes and is silent on others; of the latter, those that harm a reader are warnings. `lenient` is for
maps that were published before there was a version 1: what strict readers reject in them is then a warning.
"""

from dataclasses import replace

# In this order the checks are made and listed.
from awp_publish.plugins.actions_json.checks import (  # isort: skip
    whole,
    names,
    imports,
    tools,
    targets,
    references,
    signals,
    workflows,
    primitives,
    expressions,
    projections,
    lenient,
)
from awp_publish.plugins.actions_json.checks.specification import SPECIFICATION

SECTIONS = (
    *(whole, names, imports, tools, targets, references),
    *(signals, workflows, primitives, expressions, projections, lenient),
)
"""The modules of the checks."""
ACTIONS_JSON = replace(
    SPECIFICATION,
    judge_reading=lambda reading, path, is_lenient: lenient.check_map(reading, path, lenient=is_lenient),
)
