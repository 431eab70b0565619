"""What a form asks for when it is submitted (HTML 4.10.21.3, "form submission algorithm")."""

from dataclasses import dataclass, field
from typing import Final

from awp_publish.browsing.addresses import Address
from awp_publish.browsing.encoding import (
    ENCTYPES,
    MULTIPART,
    PLAIN,
    URLENCODED,
    encode_multipart,
    encode_plain,
    encode_urlencoded,
    pick_charset,
)
from awp_publish.browsing.entries import Entry, construct_entries
from awp_publish.browsing.markup import Control, Markup, Place, kind_of
from awp_publish.browsing.state import Overlay

METHODS: Final = ("get", "post", "dialog")


@dataclass(frozen=True, slots=True)
class Submission:
    """A form ready to be sent: `action` as it is written ("" is the page itself), its method, type and entries."""

    action: str
    method: str
    enctype: str
    charset: str
    entries: list[Entry] = field(repr=False)

    def address(self, action: Address) -> Address:
        """The address that is asked for: a GET form replaces the query of its action, the fragment stays."""
        if self.method != "get":
            return action
        return action.with_query(encode_urlencoded(self.entries, self.charset))

    def body(self) -> tuple[str, bytes]:
        """The media type and the body of a POST form."""
        if self.enctype == MULTIPART:
            return encode_multipart(self.entries, self.charset)
        if self.enctype == PLAIN:
            return PLAIN, encode_plain(self.entries, self.charset)
        return URLENCODED, encode_urlencoded(self.entries, self.charset).encode("ascii")


def prepare_submission(
    form: Place, submitter: Control | None, overlay: Overlay, markup: Markup, charset: str | None
) -> Submission:
    """What submitting a form sends. `charset` is the page's encoding where its answer said one.

    The button that submits may say another address, method and type than its form (`formaction` and so on).
    """
    node = markup.forms[form]
    said = node.attributes
    over = submitter.node.attributes if submitter is not None else {}
    labels: list[str | None] = [*said.get("accept-charset", "").replace(",", " ").split()]
    encoding = pick_charset(*(labels or [charset or markup.charset]))
    return Submission(
        action=over.get("formaction", said.get("action", "")).strip("\t\n\f\r "),
        method=_keyword(over.get("formmethod", said.get("method")), METHODS),
        enctype=_keyword(over.get("formenctype", said.get("enctype")), ENCTYPES),
        charset=encoding,
        entries=construct_entries(form, submitter, overlay, markup, encoding),
    )


def _keyword(said: str | None, known: tuple[str, ...]) -> str:
    """An enumerated attribute: what is not known is as good as the first one."""
    return said.lower() if said is not None and said.lower() in known else known[0]


def is_submit_button(control: Control) -> bool:
    """Whether activating a control submits its form (4.10.18.5)."""
    return kind_of(control.node) in ("submit", "image")


def default_button(form: Place, markup: Markup) -> Control | None:
    """The first submit button of a form: what Enter in a field presses (4.10.21.2)."""
    return next((control for control in markup.controls_of(form) if is_submit_button(control)), None)
