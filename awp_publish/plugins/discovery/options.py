"""The options of the files that crawlers look for."""

from dataclasses import dataclass

from awp_publish.schema.options import Flag, strict


@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The files that agents and crawlers look for.

    `robots_proposals` adds lines to robots.txt that only proposals have (`Agentmap`, `SOM-*`): crawlers skip what they
    do not know (RFC 9309 section 2.2.4), but Lighthouse reports such lines as errors.
    """

    robots_proposals: Flag = False
