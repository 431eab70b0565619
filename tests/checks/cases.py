"""All cases, from the file of each specification."""

from .actions_json_cases import ACTIONS_CASES
from .agent_json_cases import AGENT_JSON_CASES
from .awas_cases import AWAS_CASES, MANIFEST_CASES
from .case import Case
from .woa_cases import WOA_CASES

__all__ = ["CASES", "Case"]

CASES = (*AWAS_CASES, *MANIFEST_CASES, *AGENT_JSON_CASES, *WOA_CASES, *ACTIONS_CASES)
