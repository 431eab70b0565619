"""The page of one action: its form, and the answers to what was sent."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from awp_publish.calls.wire import Wire, WireCall, WireRequest, read_http
from awp_publish.documents.plain_request import query_fields
from awp_publish.http.exchange import Scope
from awp_publish.model import Action
from awp_publish.plugins.overview.answers import JOB_ID, ReceivedAnswer, differing
from awp_publish.plugins.overview.copied_code import python_call, write_test
from awp_publish.plugins.overview.excerpts import excerpts
from awp_publish.plugins.overview.figures import action_section
from awp_publish.plugins.overview.form import (
    BESIDE,
    CHOSEN_DOOR,
    PREFIX,
    BesideField,
    credential_headers,
    fields_of_form,
    file_type,
    input_field,
    link_to,
    public_part,
    read_input,
    shortened,
    shown_value,
)
from awp_publish.plugins.overview.html import Html, tag
from awp_publish.plugins.overview.markup import block, code, fill, pretty, table
from awp_publish.plugins.overview.requests import curl_command, request_text
from awp_publish.plugins.overview.sending import Decode, send_request
from awp_publish.plugins.overview.view import Traffic, View
from awp_publish.plugins.overview.words import policy_facts, schema_tables
from awp_publish.problems import InvalidInput
from awp_publish.schema.reading import members, object_facts, required_members
from awp_publish.schema.redaction import input_redactor


class Trial:
    """The completed form of an action, and the answers to it. `wrong` is set if the input cannot be read."""

    def __init__(self, view: View, action: Action, pairs: Sequence[tuple[str, str | bytes]], scope: Scope) -> None:
        self._view, self._door, self._scope, self._root = view, view.door, scope, view.root
        self._catalog, self._action = view.door.published(), action
        self._here = f"{view.root}/try/{action.id}"
        wires = view.wires_of(action) or view.wires
        self._raw = {name: value for name, value in pairs if isinstance(value, str)}
        # A link fills in inputs and the door, but no session, confirmation or credentials: it may be a stranger's.
        is_link = scope["method"] in ("GET", "HEAD")
        self._controls = {
            name: value.strip()
            for name, value in self._raw.items()
            if name.startswith(PREFIX) and (name == CHOSEN_DOOR or not is_link)
        }
        if not pairs and action.examples:
            pairs = query_fields(action.examples[0])
        self._inputs: dict[str, object] = {}
        self.wrong: InvalidInput | None = None
        try:
            self._inputs = read_input(action, pairs)
        except InvalidInput as problem:
            self.wrong = problem
        self._key_headers = credential_headers(self._catalog, action)
        typed = {"Authorization": "awp-authorization"} | {name: PREFIX + name.lower() for name in self._key_headers}
        credentials = {name: re.sub(r"[\x00-\x1f\x7f]", "", self._control(field)) for name, field in typed.items()}
        self._credentials = tuple((name, value) for name, value in credentials.items() if value)
        receipts = (receipt.strip() for receipt in self._control("awp-receipts").split(","))
        self._call = WireCall(
            action=action.id,
            inputs=self._inputs,
            key=self._control("awp-key"),
            confirmation=self._control("awp-confirmation"),
            receipts=tuple(receipt for receipt in receipts if receipt),
            session=self._control("awp-session"),
            declared=action,
        )
        redact = input_redactor(action.inputs)
        self._public_inputs = self._inputs if redact is None else redact(self._inputs)
        self._shown_inputs = shortened(action, self._public_inputs)
        self._wires = {wire.name: wire for wire in wires}
        self._chosen = self._wires.get(self._control(CHOSEN_DOOR), wires[0])
        call = replace(self._call, inputs=self._shown_inputs)
        self._shown_requests = {wire.name: self._written(wire, call) for wire in wires}
        self._answers: dict[str, ReceivedAnswer] = {}
        self._shown_answers: list[Html] = []
        self.cookies: dict[str, tuple[bytes, bytes]] = {}

    def _written(self, wire: Wire, call: WireCall) -> WireRequest:
        request = wire.write(call, wire.path_of(self._catalog) or wire.path)
        return replace(request, headers=(*request.headers, *self._credentials))

    def _control(self, name: str) -> str:
        return self._controls.get(name, "")

    @property
    def is_only_shown(self) -> bool:
        """True if only the request is read, written anew while somebody types, and nothing else of the page."""
        return self._scope["method"] == "POST" and self._controls.get("awp-do") == "show"

    async def send(self) -> None:
        """Run the action of the button that was pressed: send the input, or poll a job."""
        do, seconds = self._controls.get("awp-do", "send"), self._action.timeout + 5.0
        if do == "job" and JOB_ID.fullmatch(self._control("awp-job")):
            self._shown_answers.append(await self._job(self._control("awp-job")))
        elif do in ("send", "all"):
            for wire in self._wires.values() if do == "all" else [self._chosen]:
                request = self._written(wire, self._call)
                decode = partial(wire.decode, self._call, request)
                self._answers[wire.name] = await self._send(request, decode, seconds)
            self._shown_answers = [await self._answer(self._wires[name]) for name in self._answers]
            for name, value in (pair for answer in self._answers.values() for pair in answer.headers):
                if name.lower() == "set-cookie":
                    self.cookies[value.partition("=")[0]] = (b"set-cookie", value.encode("latin-1"))

    async def _send(self, request: WireRequest, decode: Decode, seconds: float) -> ReceivedAnswer:
        entrance, origin = self._door.application.entrance(self._scope), urlsplit(self._catalog.url)
        return await send_request(request, decode, origin, entrance, self._scope, seconds)

    def page(self, traffic: Traffic) -> Html:
        """Return the form with its answers, what documents say of the action, and its traffic."""
        action, origin, here = self._action, self._catalog.url, self._here
        inputs, requests = self._shown_inputs, self._shown_requests
        door = {} if self._chosen.name == next(iter(self._wires)) else {"awp-door": self._chosen.name}
        texts = {name: (self._wires[name].label, request_text(request, origin)) for name, request in requests.items()}
        first = next(
            (request for request in (requests[self._chosen.name], *requests.values()) if not request.frames), None
        )
        if first is not None:  # curl does not speak WebSocket
            texts["curl"] = ("curl", curl_command(first, origin))
        client = f"from awp_publish.client import AgentClient\n\nclient = AgentClient({json.dumps(origin)})\n"
        texts["python"] = ("Python", f"{client}answer = {python_call(action, inputs)}")
        is_authorized = any(name == "Authorization" for name, _ in self._credentials)
        chosen_door = None if self._chosen is self._view.wires[0] else self._chosen.name
        test = write_test(action, inputs, chosen_door, is_authorized, self._answers.get(self._chosen.name))
        texts["test"] = ("As a test", test)
        tabs = [
            (
                tag("input", type="radio", name="tab", id=f"tab-{key}", checked=key == self._chosen.name, class_="tab"),
                tag("label", title, for_=f"tab-{key}"),
                fill("panel", key=key, title=title, text=block(text, title)),
            )
            for key, (title, text) in texts.items()
        ]
        return fill(
            "try",
            root=self._root,
            name=action.name,
            id=action.id,
            description=action.description,
            facts=[fill("fact", term=term, words=words) for term, words in policy_facts(self._catalog, action)],
            form=self._form(),
            answers=self._shown_answers or None,
            none=None if self._shown_answers else "Nothing has been sent yet.",
            link=link_to(here, public_part(inputs), door),
            tabs=tabs,
            schemas=schema_tables(action),
            examples=[
                fill(
                    "example",
                    text=block(pretty(example), f"Example {number}"),
                    link=link_to(here, example),
                    number=number,
                )
                for number, example in enumerate(action.examples, 1)
            ]
            or None,
            excerpts=None
            if self.is_only_shown
            else list(excerpts(self._action, self._view.documents))
            or tag("p", "No public document names this action.", class_="none"),
            traffic=action_section(traffic, action.id),
        )

    def _form(self) -> Html:
        action, inputs, arguments = self._action, self._action.inputs, self._inputs
        parts = members(facts := object_facts(inputs, inputs))
        values = {
            name: shown_value(arguments[name]) if name in arguments else self._raw.get(name, "") for name in parts
        }
        if (redact := input_redactor(inputs)) is not None:  # secrets have to be typed each time
            values |= dict.fromkeys(arguments.keys() - public_part(redact(arguments)).keys() & values.keys(), "")
        required = required_members(facts)
        fields = [input_field(name, part, inputs, name in required, values[name]) for name, part in parts.items()]
        more = {name: shown_value(value) for name, value in arguments.items() if name not in values}
        fields += [input_field(name, {}, inputs, False, value) for name, value in more.items()]
        hint = "It is sent but never shown."
        secret = [BesideField(PREFIX + name.lower(), name, hint, "password") for name in self._key_headers]
        beside = [
            fill(
                "field",
                ident=name,
                label=label,
                field=tag(
                    "input",
                    type=kind,
                    name=name,
                    id=name,
                    # Credentials have to be typed each time, so that no page contains them.
                    value="" if kind == "password" else self._control(name),
                    autocomplete="off",
                    aria_describedby=f"{name}-hint",
                ),
                hint=hint,
            )
            for name, label, hint, kind in (*BESIDE, *secret)
        ]
        summary = tag("summary", "More fields: keys, confirmation, credentials")
        doors = [
            tag(
                "label",
                tag("input", type="radio", name="awp-door", value=wire.name, checked=wire is self._chosen),
                f" {wire.label}",
                class_="choice",
            )
            for wire in self._wires.values()
        ]
        content = fill(
            "form",
            wrong=self.wrong.detail if self.wrong is not None else None,
            fields=fields or None,
            none=None if fields else "This action takes no input.",
            beside=tag("details", summary, beside, open=any(self._control(field.name) for field in BESIDE)),
            doors=doors,
            warning=_warning(action, len(self._wires)),
        )
        takes_files = any(file_type(part, inputs) is not None for part in parts.values())
        return tag(
            "form",
            content,
            method="post",
            action=self._here,
            enctype="multipart/form-data" if takes_files else None,
            novalidate=True,
            data_live=True,
        )

    async def _answer(self, wire: Wire) -> Html:
        """Return the answer of one door, compared with the first."""
        answer, (first, compared_with) = self._answers[wire.name], next(iter(self._answers.items()))
        problem, question = answer.problem, None
        lines, count = differing(answer, compared_with)
        compared: object = ""
        if answer is not compared_with:
            words = ("differs from " if count else "the same as ", self._wires[first].label)
            compared = (" · ", tag("span", *words, class_="differs" if count else "same"))
        if (confirmation := answer.question) is not None:
            agreed = {"awp-door": wire.name, "awp-confirmation": confirmation["token"], "awp-do": "send"}
            question = fill(
                "question",
                summary=confirmation.get("summary", ""),
                until=confirmation.get("expires_at", ""),
                agree=self._again(agreed, "Agree and call again"),
            )
        headers = [(code(name), value) for name, value in answer.headers]
        sent = request_text(self._shown_requests[wire.name], self._catalog.url)
        return fill(
            "answer",
            key=wire.name,
            door=wire.label,
            state="ok" if problem is None else "asked" if answer.question is not None else "error",
            said="answered" if problem is None else str(problem.get("code") or "refused"),
            status=f"{answer.status} · " if answer.status else "",
            milliseconds=f"{answer.milliseconds:.1f}",
            compared=compared,
            spent=answer.spent or None,
            lines=lines,
            recovery=str(problem["recovery"]) if problem and problem.get("recovery") else None,
            question=question,
            job=await self._job(answer.job_id) if answer.job_id is not None else None,
            sent=block(sent, f"Sent to {wire.label}"),
            headers=table(f"Headers of the answer through {wire.label}", ("header", "value"), headers)
            if headers
            else None,
            received=block(answer.text[:20_000] or "(empty)", f"Received from {wire.label}"),
        )

    def _again(self, controls: Mapping[str, str], label: str) -> Html:
        """Return a form that sends the same input with additional fields. Credentials have to be typed again."""
        call, public = self._call, public_part(self._public_inputs)
        call_fields = {"awp-key": call.key, "awp-receipts": ", ".join(call.receipts), "awp-session": call.session}
        hidden = [*fields_of_form(public), *{**call_fields, **controls}.items()]
        fields = [tag("input", type="hidden", name=name, value=value) for name, value in hidden if value]
        typed = {name: PREFIX + name.lower() for name, _ in self._credentials}
        typed |= {name: name for name in self._public_inputs.keys() - public.keys()}
        fields += [
            tag("label", f"{label_text} ", tag("input", type="password", name=name, autocomplete="off"))
            for label_text, name in typed.items()
        ]
        return tag("form", fields, tag("button", label), method="post", action=self._here, data_live=True)

    async def _job(self, job_id: str) -> Html:
        """Poll a job and return its progress."""
        session = (("AWP-Session", self._call.session),) if self._call.session else ()
        request = WireRequest("GET", f"{self._catalog.paths.jobs}/{job_id}", (*session, *self._credentials))
        answer = await self._send(request, partial(read_http, self._call, request), 10.0)
        state: Mapping[str, Any] = answer.output if isinstance(answer.output, dict) else {}
        progress: Mapping[str, Any] = state["progress"] if isinstance(state.get("progress"), dict) else {}
        status, fraction = str(state.get("status", "unknown")), progress.get("fraction")
        has_ended = status not in ("accepted", "running")
        value = 1 if has_ended else fraction if isinstance(fraction, (int, float)) else None
        content = fill(
            "job",
            said=f"{status}. {progress.get('message') or ''}",
            bar=tag("progress", max=1, aria_label="Progress of the job", value=value),
            state=block(pretty(answer.output if answer.problem is None else answer.problem), "State of the job"),
            again=None if has_ended else self._again({"awp-do": "job", "awp-job": job_id}, "Look again"),
        )
        return tag("div", content, class_="job", data_job=None if has_ended else job_id)


_CONSEQUENCES: Final = {
    "idempotent": "changes something",
    "write": "changes something on every call",
    "delete": "deletes something",
    "irreversible": "does what cannot be undone",
}


def _warning(action: Action, doors: int) -> str | None:
    """Say that sending the form is a real call, None for an action that only reads."""
    if action.effect == "read":
        return None
    many = f" Sending through all doors makes {doors} calls." if doors > 1 else ""
    return f"This is a real call: it {_CONSEQUENCES[action.effect]}.{many}"
