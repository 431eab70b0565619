"""What a browser would send for the fields that a caller leaves out: the values that the form shows.

A person who changes one field of a form sends all of them, as the page shows them: its instance's, its initial ones,
its checked boxes (HTML, constructing the entry list). A call is completed in the same way from the page at the
action's own address. Where there is no such page, texts are sent empty or with their initial value. Another form, with
which a view goes on at its address as a wizard does, is filled in too, if the action declares its fields.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urlencode, urljoin, urlsplit

import orjson
from django import forms

from awp_publish.http.exchange import (
    AsgiApp,
    Message,
    Receive,
    Reply,
    Scope,
    Send,
    content_length,
    read_fields,
    send_reply,
)
from awp_publish.http.page_request import PageAnswer, PageExchange
from awp_publish.http.redirects import cookies_of, receive_cookies
from awp_publish.http.route_answers import SURE_PLACE
from awp_publish.http.route_exchange import Rehearsal, RouteExchange
from awp_publish.model import ROUTE_CALL, JsonObject, Parameter
from awp_publish.schema import media

MAX_PAGE_BYTES: Final = 4_000_000
"""The largest page that is read for the values of its form."""

JSON: Final = b"application/json"

CSRF_FIELD: Final = "csrfmiddlewaretoken"

NEXT_FORM: Final = "awp_publish_django.next_form"
"""The place of a request's NextForm in its scope."""

Entries = Sequence[tuple[str, str]]


@dataclass(slots=True)
class NextForm:
    """The page of another form with which a view goes on at its address, and that form if the action is about it."""

    page: str = ""
    form: "_Form | None" = None


@dataclass(frozen=True, slots=True)
class FormParameter(Parameter):
    """An input that is a field of a form. `on_page` is True if the form is shown at the action's own address."""

    declared: forms.Field = field(kw_only=True, compare=False)
    on_page: bool = False

    def initial_texts(self) -> list[str]:
        """Return what a browser sends for the field of a form that nobody has filled in."""
        declared = self.declared
        if isinstance(declared, forms.FileField):
            return []
        widget, initial = declared.widget, declared.initial() if callable(declared.initial) else declared.initial
        if isinstance(widget, forms.CheckboxInput):
            return ["on"] if widget.check_test(initial) else []
        values = None if initial is None else widget.format_value(declared.prepare_value(initial))
        if values is None:
            return [""] if isinstance(widget, (forms.TextInput, forms.Textarea)) else []
        return [str(value) for value in values] if isinstance(values, (list, tuple)) else [str(values)]

    def empty(self) -> tuple[str, str]:
        """Return what a browser sends if somebody empties the field."""
        if isinstance(self.declared, forms.FileField):
            return f"{self.wire_name}-clear", "on"
        return self.wire_name, ""


@dataclass(frozen=True, slots=True)
class RestParameter(Parameter):
    """An input of a view of REST framework that takes files, and JSON too.

    For REST framework a form in which a boolean is left out says false, and one without a list empties it, unlike JSON.
    So what has no file is sent as JSON, and a file with the booleans that are true if nobody says anything (`is_true`),
    or with what the object has (`is_kept`), as its address shows it (`GET`).
    """

    is_true: bool = False
    is_kept: bool = False


async def call_with_form(app: AsgiApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Call an action's view; if it takes a form of which fields are left out, with the values that the form shows."""
    exchange = scope.get(ROUTE_CALL)
    if not isinstance(exchange, RouteExchange) or isinstance(exchange, Rehearsal):
        await app(scope, receive, send)
        return
    call = exchange.call
    parameters = call.action.target.parameters if call.action.target is not None else ()
    inputs = call.input
    rest = [parameter for parameter in parameters if isinstance(parameter, RestParameter)]
    if rest and all(inputs.get(parameter.name) is None for parameter in rest if parameter.location == "file"):
        members = {parameter.wire_name: inputs[parameter.name] for parameter in rest if parameter.name in inputs}
        await _send_on(app, scope, receive, send, orjson.dumps(members), JSON)
        return
    if any(isinstance(parameter, FormParameter) for parameter in parameters):
        await _Filling(app, scope, receive, send, parameters, inputs).run()
        return
    entries = [*_rest_entries(rest, inputs), *(await _kept_entries(app, scope, rest, inputs))] if rest else []
    if not entries:
        await app(scope, receive, send)
        return
    body = _with_entries(scope, (await receive()).get("body", b""), entries)
    await _send_on(app, scope, receive, send, body)


def _rest_entries(rest: Sequence[RestParameter], inputs: JsonObject) -> Entries:
    return [
        *((parameter.wire_name, "true") for parameter in rest if parameter.is_true and parameter.name not in inputs),
        *(
            (parameter.wire_name, "")
            for parameter in rest
            if parameter.name in inputs and inputs[parameter.name] is None
        ),
    ]


async def _kept_entries(app: AsgiApp, scope: Scope, rest: Sequence[RestParameter], inputs: JsonObject) -> Entries:
    missing = [parameter.wire_name for parameter in rest if parameter.is_kept and parameter.name not in inputs]
    page = await _fetch_page(app, scope, JSON) if missing else None
    try:
        current = orjson.loads(page.body) if page is not None and _is_of_type(page, JSON) else None
    except orjson.JSONDecodeError:
        return []
    values = [(name, current[name]) for name in missing if name in current] if isinstance(current, dict) else []
    several = [(name, value if isinstance(value, list) else [value]) for name, value in values]
    return [
        (name, "" if value is None else value if isinstance(value, str) else orjson.dumps(value).decode())
        for name, parts in several
        for value in parts
    ]


class _Filling:
    """Sends a form, and the further ones with which its view goes on, until there is an answer."""

    def __init__(
        self,
        app: AsgiApp,
        scope: Scope,
        receive: Receive,
        send: Send,
        parameters: Sequence[Parameter],
        inputs: JsonObject,
    ) -> None:
        self._app, self._scope, self._receive, self._send = app, scope, receive, send
        self._fields = [parameter for parameter in parameters if isinstance(parameter, FormParameter)]
        self._given = [parameter for parameter in parameters if parameter.name in inputs]
        self._emptied = [field.empty() for field in self._fields if field in self._given and inputs[field.name] is None]
        self._changes = any(parameter.location == "path" for parameter in parameters)
        self._left = {field.wire_name for field in self._fields}
        self._next_form = NextForm()
        self._cookies = cookies_of(scope["headers"])
        self._set_cookies: list[tuple[bytes, bytes]] = []

    async def run(self) -> None:
        """Send what a browser sends beside what is given: all that the form on the page has, hidden fields too.

        Nothing is sent where the page fails, or does not show what a thing that is there already has: that would empty
        what is left out.
        """
        body, form = (await self._receive()).get("body", b""), None
        missing = [field for field in self._fields if field not in self._given]
        if any(field.on_page for field in self._fields):
            page = await _fetch_page(self._app, self._scope, b"text/html")
            if page.status >= 500:
                await send_reply(Reply(page.status, page.headers, page.body), self._send)
                return
            form = self._first_form(page)
            unseen = [field for field in missing if not isinstance(field.declared, forms.FileField)]
            if form is None and page.status == 200 and self._changes and unseen:
                await send_reply(_refusal(unseen), self._send)
                return
        if form is None:
            entries = [(field.wire_name, text) for field in missing for text in field.initial_texts()]
        else:
            entries = self._entries_of(form)
        while True:
            self._next_form = next_form = NextForm()
            scope: Scope = {**self._scope, NEXT_FORM: next_form}
            if self._set_cookies:
                cookie = "; ".join(f"{name}={value}" for name, value in self._cookies.items()).encode(
                    "latin-1", "replace"
                )
                headers = [pair for pair in self._scope["headers"] if pair[0] != b"cookie"]
                scope["headers"] = [*headers, (b"cookie", cookie)]
            completed = _with_entries(scope, body, [*self._emptied, *entries])
            await _send_on(self._app, scope, self._receive, self._pass_on, completed)
            if next_form.form is None:
                return
            entries = self._entries_of(next_form.form)

    def _first_form(self, page: PageAnswer) -> "_Form | None":
        if not _is_of_type(page, b"text/html"):
            return None
        text, _ = media.decode(page.body, read_fields(page.headers)[b"content-type"].decode("latin-1"))
        return find_form(text, self._scope["path"], self._left)

    def _entries_of(self, form: "_Form") -> list[tuple[str, str]]:
        self._left -= form.names
        names = {CSRF_FIELD, *(parameter.wire_name for parameter in self._given)}
        rows = tuple(f"{parameter.wire_name}-" for parameter in self._given if parameter.location == "rows")
        return [pair for pair in form.entries if pair[0] not in names and not pair[0].startswith(rows)]

    async def _pass_on(self, message: Message) -> None:
        """Pass an answer on, unless it is the page of another form of which the action declares fields."""
        next_form = self._next_form
        if message["type"] == "http.response.start":
            headers: list[tuple[bytes, bytes]] = list(message["headers"])
            if next_form.page:
                next_form.form = find_form(next_form.page, self._scope["path"], self._left)
            if next_form.form is not None:
                receive_cookies(self._cookies, headers)
                self._set_cookies += [pair for pair in headers if pair[0] == b"set-cookie"]
            message = {**message, "headers": [*self._set_cookies, *headers]}
        if next_form.form is None:
            await self._send(message)


async def _send_on(
    app: AsgiApp, scope: Scope, receive: Receive, send: Send, body: bytes, content_type: bytes | None = None
) -> None:
    """Call the view with another body."""
    replaced = (b"content-length",) if content_type is None else (b"content-length", b"content-type")
    headers = [content_length(len(body)), *([(b"content-type", content_type)] if content_type is not None else ())]
    others = [pair for pair in scope["headers"] if pair[0] not in replaced]
    parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_completed() -> Message:
        return parts.pop() if parts else await receive()

    await app({**scope, "headers": [*others, *headers]}, receive_completed, send)


def _with_entries(scope: Scope, body: bytes, entries: Entries) -> bytes:
    content_type = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    boundary = content_type.partition(b"boundary=")[2]
    if not boundary:
        return b"&".join(filter(None, (body, urlencode(entries).encode("ascii"))))
    parts = [
        b'--%b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n'
        % (boundary, name.replace('"', "%22").encode(), text.encode())
        for name, text in entries
    ]
    return b"".join((body.removesuffix(b"--%b--\r\n" % boundary), *parts, b"--%b--\r\n" % boundary))


async def _fetch_page(app: AsgiApp, scope: Scope, media_type: bytes) -> PageAnswer:
    """Return the answer at the action's address to a GET that accepts a media type."""
    described = (b"content-type", b"content-length", b"accept")
    headers = [(b"accept", media_type), *(pair for pair in scope["headers"] if pair[0] not in described)]
    return await PageExchange(most=MAX_PAGE_BYTES).run(app, {**scope, "method": "GET", "headers": headers})


def _is_of_type(answer: PageAnswer, media_type: bytes) -> bool:
    is_such = read_fields(answer.headers).get(b"content-type", b"").lower().startswith(media_type)
    return answer.status == 200 and is_such and answer.is_whole


def _refusal(unseen: Sequence[FormParameter]) -> Reply:
    words = "is required: the page does not show what it has, so it would be emptied"
    errors = [{"loc": ["form", field.wire_name], "msg": words, "type": SURE_PLACE} for field in unseen]
    return Reply(422, ((b"content-type", JSON),), orjson.dumps({"detail": errors}))


def find_form(page: str, path: str, names: set[str]) -> "_Form | None":
    """Return the form that is sent to `path` and has the most of these names, None if it is not sure."""
    reader = _FormReader()
    reader.feed(page)
    posted = [form for form in reader.forms if form.method == "post" and not names.isdisjoint(form.names)]
    own = [form for form in posted if urlsplit(urljoin(path, form.action)).path == path]
    ranked = sorted(own or posted, key=lambda form: len(names & form.names), reverse=True)
    if not ranked or (len(ranked) > 1 and len(names & ranked[0].names) == len(names & ranked[1].names)):
        return None
    return ranked[0]


@dataclass(slots=True)
class _Form:
    action: str = ""
    method: str = ""
    is_opened: bool = False
    names: set[str] = field(default_factory=set)
    entries: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Select:
    name: str
    owner: _Form
    is_list: bool
    options: list[tuple[str, bool, bool]] = field(default_factory=list)
    """Value, whether it is selected, whether it is disabled."""

    open_option: tuple[str | None, bool, bool] | None = None
    """The same of one whose text is being read, which is its value if it has no other."""


class _FormReader(HTMLParser):
    """Reads the forms of a page with the entries that a browser sends for them as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[_Form] = []
        self._by_id: dict[str, _Form] = {}
        self._open: _Form | None = None
        self._text: list[str] = []
        self._area: tuple[str, _Form] | None = None
        self._select: _Select | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "form" and self._open is None:
            form_id = attributes.get("id", "")
            if form_id in self._by_id and self._by_id[form_id].is_opened:  # ids should be unique, and need not be
                form_id = ""
            self._open = self._form(form_id)
            self._open.is_opened = True
            self._open.action, self._open.method = attributes.get("action", ""), attributes.get("method", "").lower()
        elif tag == "option" and self._select is not None:
            self._end_option()
            self._select.open_option = (attributes.get("value"), "selected" in attributes, "disabled" in attributes)
            self._text = []
        elif tag in ("input", "textarea", "select") and attributes.get("name") and "disabled" not in attributes:
            owner = self._form(attributes["form"]) if attributes.get("form") else self._open
            if owner is not None:
                self._control(tag, attributes, owner)

    def _form(self, form_id: str) -> _Form:
        form = self._by_id.get(form_id)
        if form is None:
            form = _Form()
            self.forms.append(form)
            if form_id:
                self._by_id[form_id] = form
        return form

    def _control(self, tag: str, attributes: Mapping[str, str], owner: _Form) -> None:
        name, kind = attributes["name"], attributes.get("type", "").lower()
        if tag == "textarea":
            owner.names.add(name)
            self._area, self._text = (name, owner), []
        elif tag == "select":
            owner.names.add(name)
            self._select = _Select(name, owner, "multiple" in attributes)
        elif kind not in ("submit", "button", "image", "reset"):
            owner.names.add(name)
            is_box = kind in ("checkbox", "radio")
            if kind != "file" and (not is_box or "checked" in attributes):
                owner.entries.append((name, attributes.get("value", "on" if is_box else "")))

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None
        elif tag == "textarea" and self._area is not None:
            name, owner = self._area
            owner.entries.append((name, "".join(self._text).removeprefix("\r").removeprefix("\n")))
            self._area = None
        elif tag == "option":
            self._end_option()
        elif tag == "select" and self._select is not None:
            self._end_option()
            chosen, self._select = self._select, None
            selected = [value for value, is_selected, is_disabled in chosen.options if is_selected and not is_disabled]
            if not chosen.is_list:
                first = [value for value, _, is_disabled in chosen.options if not is_disabled]
                has_selected = any(is_selected for _, is_selected, _ in chosen.options)
                selected = selected[-1:] if has_selected else first[:1]
            chosen.owner.entries += [(chosen.name, value) for value in selected]

    def _end_option(self) -> None:
        """Give an option without a value its text."""
        if self._select is not None and self._select.open_option is not None:
            value, is_selected, is_disabled = self._select.open_option
            text = " ".join("".join(self._text).split())
            self._select.options.append((text if value is None else value, is_selected, is_disabled))
            self._select.open_option = None
