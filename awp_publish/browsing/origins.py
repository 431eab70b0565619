"""`Origins`: the addresses that are this site's own. Everything else is foreign and is never asked for."""

from dataclasses import dataclass

from awp_publish.browsing.addresses import Address, BadAddress, parse_address
from awp_publish.browsing.errors import AwpError, refuse


@dataclass(frozen=True, slots=True)
class Origins:
    """The site's own addresses: scheme, host and port of each, and the path under which all of it lives.

    `origins` are as browsers write them (`https://shop.example`); `prefix` is "" or `/shop`.
    """

    origins: tuple[str, ...]
    prefix: str = ""

    @classmethod
    def of(cls, *urls: str) -> "Origins":
        """From the site's configured URLs (`https://shop.example`, `http://127.0.0.1:8000/shop`).

        All urls need the same path, which is the prefix. ValueError for none, and for what is not an http(s) address.
        """
        addresses = [parse_address(url) for url in urls]
        prefixes = {address.path.rstrip("/") for address in addresses}
        if len(prefixes) != 1:
            raise ValueError("a site's addresses need one path, the same for all of them")
        return cls(tuple(dict.fromkeys(address.origin for address in addresses)), prefixes.pop())

    @property
    def home(self) -> Address:
        """The address that a relative one means when no page is loaded."""
        return parse_address(self.origins[0] + self.prefix + "/")

    @property
    def hosts(self) -> set[str]:
        """The host names of the site."""
        return {parse_address(origin).host for origin in self.origins}

    def owns(self, address: Address) -> bool:
        """Whether an address is one of this site's."""
        inside = address.path == self.prefix or address.path.startswith(self.prefix + "/")
        return inside and address.origin in self.origins

    def resolve(self, text: str, base: Address | None, longest: int) -> Address:
        """The own address that a text means.

        Raises:
            AwpError: INVALID_REQUEST where the text is no address, PERMISSION_DENIED where it is not this site's
                (another host, port or scheme, `javascript:`, `mailto:`): servers may keep to a list of domains
                (the draft's Permissions).
        """
        if len(text) > longest:
            refuse(f"The address is longer than {longest} characters", length=len(text))
        try:
            address = parse_address(text, base or self.home)
        except BadAddress as error:
            raise self._refusal(text, str(error)) from error
        if not self.owns(address):
            raise self._refusal(str(address), "it is not an address of this site")
        return address

    def _refusal(self, url: str, reason: str) -> AwpError:
        allowed = [origin + self.prefix for origin in self.origins]
        return AwpError(
            "PERMISSION_DENIED",
            f"Only pages of this site can be opened: {reason}",
            {"url": url, "reason": reason, "allowed": allowed},
        )
