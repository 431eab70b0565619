"""Limits: calls above a rate are refused."""

from awp_publish.plugin import Plugin
from awp_publish.plugins.limits.gate import limits_gate

PLUGIN = Plugin(
    name="limits",
    is_default=True,
    fulfils=("rate_limit",),
    gates=lambda setup: (limits_gate(setup.site.facts.rate_limit),),
)
