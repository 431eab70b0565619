"""Attachments: affordances that a map puts beside elements of a page (V1, attachments)."""

from awp_publish.maps import reading
from awp_publish.maps.live_page import LivePage, PrimitiveError
from awp_publish.maps.states import States
from awp_publish.maps.targets import locate
from awp_publish.schema import JsonObject


class Attachments:
    """Installs, removes and installs again the attachments of a map according to their lifecycle."""

    def __init__(self, page: LivePage, states: States) -> None:
        self._page, self._states = page, states
        self._installed: set[str] = set()

    async def update(self, attachment: JsonObject) -> str:
        """Install, remove or reinstall one attachment, and return its present state."""
        name, target = str(attachment.get("id")), reading.part(attachment, "target")
        lifecycle, affordance = reading.part(attachment, "lifecycle"), reading.part(attachment, "affordance")
        is_there = name in await self._page.attached()
        if lifecycle.get("install") != "when_target_matches":
            return "attached" if is_there else "unsupported"
        try:
            in_context = await self._states.misfit(target, {}) is None
            match = await locate(self._page, target) if in_context else None
            if match is None or not match.elements:
                removes = lifecycle.get("remove") == "when_context_mismatch" or match is not None
                if is_there and removes:
                    await self._page.detach(name)
                    is_there = False
                return "attached" if is_there else "drifted" if in_context and name in self._installed else "detached"
            anchor = match.elements[0]
            if is_there:
                return "attached"
            most = affordance.get("max_instances", 1)
            stays_away = name in self._installed and lifecycle.get("reattach") != "on_url_or_dom_change"
            if stays_away or (isinstance(most, (int, float)) and most < 1):
                return "detached"
            await self._page.attach(name, anchor.ref, affordance)
            self._installed.add(name)
            return "attached"
        except PrimitiveError as error:
            return "unsupported" if error.code == "capability_unavailable" else "drifted"
