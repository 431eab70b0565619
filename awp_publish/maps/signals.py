"""Signals: events of a page that a map forwards to agents (V1, signals)."""

import secrets
from collections.abc import Callable, Mapping, Sequence

from awp_publish.maps import reading, rules
from awp_publish.maps.composed import ComposedMap
from awp_publish.maps.failures import RuntimeFailure
from awp_publish.maps.live_page import LivePage, PrimitiveError
from awp_publish.maps.targets import locate
from awp_publish.schema import JsonObject


class Signals:
    """Listens for the events that a map enables. `dropped` counts those whose payload was invalid."""

    def __init__(
        self, action_map: ComposedMap, page: LivePage, hidden: frozenset[str], observed: Callable[[], str]
    ) -> None:
        self._map, self._page, self._hidden, self._observed = action_map, page, hidden, observed
        self._listening: frozenset[str] = frozenset()
        self.dropped = 0

    async def listen(self) -> None:
        events = frozenset(str(signal.get("event")) for signal in self._enabled_signals())
        if events - self._listening:
            await self._page.listen(events)
            self._listening = events

    def _enabled_signals(self) -> Sequence[JsonObject]:
        """Return the signals that the map enables; the default is disabled."""
        signals = self._map.objects("signals")
        ways = ("html_to_agent", "bidirectional")
        return [
            signal
            for signal in signals
            if signal.get("ingestion") == "enabled"
            and isinstance(signal.get("event"), str)
            and signal.get("direction", ways[0]) in ways
            and signal.get("name") not in self._hidden
        ]

    async def take(self) -> Sequence[JsonObject]:
        """Return the events since the last call that the map enables and whose payload is valid.

        Each has `event_id`, `name`, `event`, `url`, `payload`, `observed_at`: a `dom_event` without its runtime.
        Without a payload schema only the fact that it occurred is forwarded.
        """
        await self.listen()
        forwarded = []
        for event in await self._page.take_events():
            for signal in self._enabled_signals():
                if signal.get("event") != event.event:
                    continue
                target = reading.part(signal, "target")
                if target and not await self._is_source(target, event.refs, event.url):
                    continue
                name, schema = str(signal.get("name")), signal.get("payload")
                payload: object = {}
                if isinstance(schema, Mapping):
                    payload = {} if event.detail is None else event.detail
                    try:
                        validator = self._map.validator(f"signals/{name}", schema)
                    except RuntimeFailure:  # no payload can be valid
                        payload = None
                    if not isinstance(payload, Mapping) or (validator is not None and not validator.is_valid(payload)):
                        self.dropped += 1
                        continue
                forwarded.append(
                    {
                        "event_id": f"event_{secrets.token_hex(8)}",
                        "name": name,
                        "event": event.event,
                        "url": event.url,
                        "payload": payload,
                        "observed_at": self._observed(),
                    }
                )
        return forwarded

    async def _is_source(self, target: JsonObject, refs: Sequence[str], url: str) -> bool:
        if not rules.url_fits(target, url):
            return False
        if not any(name in target for name in (*rules.SELECTORS, "role", "name", "text_equals", "text_contains")):
            return True
        try:
            match = await locate(self._page, target, attached=True)
        except PrimitiveError:
            return False
        return any(element.ref in refs for element in match.elements)
