"""Every protocol and every problem there is: those of the core and of the plug-ins that are installed."""

from awp_publish import Site
from awp_publish.declare.plugins import problems_of
from awp_publish.plugin import installed, known_protocols
from awp_publish.problems import ALL as OF_CORE

ALL = known_protocols()

_OF_EVERY_SITE = problems_of(Site("Shop", "Sells things.", url="https://shop.example").plugins)
_OF_FEATURES = [kind for plugin in installed().values() for kind in plugin.problems]

PROBLEMS = tuple(dict.fromkeys((*OF_CORE, *_OF_EVERY_SITE, *_OF_FEATURES)))
