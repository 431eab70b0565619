"""`awp-publish dns`: prints DNS-AID and AID records, by which agents find the doors of a domain."""

from argparse import Namespace
from typing import Any, Final
from urllib.parse import urlsplit

from awp_publish.documents.members import AGENT_CARD_PATHS, ARD_PATH, MCP_CARD_SUFFIX
from awp_publish.plugin import Command, LoadedApplication
from awp_publish.problems import DeclarationError

CAPABILITY_KEY: Final = "key65400"
WELL_KNOWN_KEY: Final = "key65409"
"""DNS-AID's `cap` and `well-known`, as its reference implementation numbers them: none is assigned yet (RFC 9460)."""

MAX_AID_BYTES: Final = 255
"""Bytes of one string of a TXT record."""


def run(console: Any, application: LoadedApplication, options: Namespace) -> int:
    """Print the DNS records by which agents find the doors, for pasting into the zone.

    DNS-AID (draft-mozleywilliams-dnsop-dnsaid-02): SVCB records in ServiceMode below `_agents`, one for each agent
    protocol, with the document that describes it, and one for the domain's index. AID (draft-nemethi-dawn-aid-00): a
    single TXT record at `_agent`, because two of the same version would be ambiguous.
    """
    catalog = application.site.catalog
    parts = urlsplit(catalog.url)
    if parts.scheme != "https":
        remedy = "Set Site(url=...) to its public address: both drafts require https."
        raise DeclarationError(f"site.url {catalog.url}", "is not an https address.", remedy)
    domain = catalog.domain.encode("idna").decode() if not catalog.domain.isascii() else catalog.domain
    port = parts.port or 443
    doors = [door for door in catalog.doors if door.protocol in ("mcp", "a2a")]
    cards = {"mcp": catalog.paths.mcp + MCP_CARD_SUFFIX, "a2a": AGENT_CARD_PATHS[0]}

    def service(alpn: str, card: str | None, key: str, value: str) -> str:
        beside = f' {key}="{value}"' if card in application.documents else ""
        return f'1 {domain}. mandatory="alpn,port" alpn="{alpn}" port="{port}"{beside}'

    index = service("h2", ARD_PATH, WELL_KNOWN_KEY, ARD_PATH.removeprefix("/.well-known/"))
    records = [("SVCB", f"_index._agents.{domain}.", index)]
    for door in doors:
        card = cards[door.protocol]
        value = service(f"{door.protocol},h2", card, CAPABILITY_KEY, catalog.absolute(card))
        records.append(("SVCB", f"_{door.protocol}._agents.{domain}.", value))
    first = min(doors, key=lambda door: door.protocol != "mcp", default=None)
    if first is not None:
        address, protocol = catalog.absolute(first.path), first.protocol
    elif catalog.openapi is not None:
        address, protocol = catalog.absolute(catalog.openapi.path), "openapi"
    else:
        address = protocol = ""
    comments = [
        "; DNS-AID: where the agents of this domain are. Sign the zone (DNSSEC): otherwise the answers prove nothing.",
        "; AID: the address at which to begin.",
    ]
    if address:
        authentication = catalog.site.authentication
        auth = ";a=oauth2_code" if authentication is not None and authentication.type == "oauth2" else ""
        text = f"v=aid2;u={address};p={protocol}{auth}"
        name = "".join(sign for sign in catalog.site.name if sign.isprintable() and sign not in ';"\\')
        full_text = f"{text};s={name}"
        if len(text.encode()) > MAX_AID_BYTES:
            raise DeclarationError(f"site.url {catalog.url}", "is too long for a TXT record.", "Use a shorter one.")
        text = full_text if len(full_text.encode()) <= MAX_AID_BYTES else text
        records.append(("TXT", f"_agent.{domain}.", f'"{text}"'))
    for kind, comment in zip(("SVCB", "TXT"), comments, strict=True):
        lines = [f"{name} 3600 IN {of} {value}" for of, name, value in records if of == kind]
        console.say(*([comment, *lines] if lines else ()))
    console.json({"records": [{"name": name, "ttl": 3600, "type": of, "value": value} for of, name, value in records]})
    return 0


DNS = Command(help="print DNS-AID and AID records to paste into the zone", run=run)
