"""`Limits`: how much one browsing session may hold, so that five hundred of them fit into one process."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one session. Sizes are in bytes, times in seconds.

    `pages` are open at once in a session (the paper's max_pages_per_session). `page_bytes` is the largest body that is
    read as a page, `form_bytes` the largest body of a form. `history` is the number of addresses that a page can go
    back and forward to. `kept_bytes` is what a page keeps of earlier bodies, to go back without a fetch and to tell
    changes since an earlier cursor; `moments` is how many earlier cursors it knows at most. `value_length` bounds a
    typed text and `url_length` an address, in characters. `cookies` and `cookie_bytes` bound the cookie jar and one
    cookie. `changed_controls` bounds the number of form controls of one page that differ from its HTML. `fields` and
    `pattern_length` bound an extraction, `fallbacks` the alternatives of one target.
    """

    pages: int = 16
    page_bytes: int = 4_000_000
    form_bytes: int = 4_000_000
    redirects: int = 10
    history: int = 50
    kept_bytes: int = 128_000
    moments: int = 32
    value_length: int = 100_000
    url_length: int = 8_000
    cookies: int = 180
    cookie_bytes: int = 4_096
    changed_controls: int = 2_000
    fields: int = 100
    pattern_length: int = 1_000
    fallbacks: int = 16
