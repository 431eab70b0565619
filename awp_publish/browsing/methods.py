"""The methods of the protocol that are about pages and cookies, as one table: name -> `Method`.

    method = METHODS["page.navigate"]
    method.check(params)                        # INVALID_REQUEST: before the session is looked up
    steps = method.run(session, params)         # a generator for every method, whether it fetches or not
    fetch = next(steps)                         # StopIteration.value is the result
    fetch = steps.send(fetched)

`scope` is the permission that a caller needs (paper, Table 3). All raise AwpError.

page.navigate  {url, page_id?}                                          som:read and page:act -> scope page:act
page.back, page.forward {page_id?}, page.reload {page_id?}              page:act; answer as page.navigate does
page.history   {page_id?} -> {entries [{url, title}], index}            som:read
page.observe   {mode?, cursor?, budget?, page_id?}                      som:read
page.act       {intent, page_id?}                                       page:act
page.extract   {fields | structured_data | interactive_elements, page_id?}   som:read
page.create    {} -> {page_id};  page.close {page_id} -> {closed: true};  page.list {} -> {pages, count}
session.cookies.get {url?, name?} -> {cookies, count}; .set {cookies} -> {set}; .clear {name?, domain?, url?} -> {cleared}

`page_id` left out means the session's first page; every session is born with one ("p_1").
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from awp_publish.browsing.fetching import Steps
from awp_publish.browsing.session import Session


@dataclass(frozen=True, slots=True)
class Method:
    """One method of the protocol: the scope it needs, the check of its parameters, and its run."""

    name: str
    scope: str
    check: Callable[[Mapping[str, object]], None]
    run: Callable[[Session, Mapping[str, object]], Steps]


METHODS: Mapping[str, Method] = {}
