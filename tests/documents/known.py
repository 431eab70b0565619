"""Every protocol there is: those of the core and of the plug-ins that are installed."""

from awp_publish.plugin import known_protocols

ALL = known_protocols()
