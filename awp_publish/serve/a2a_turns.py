"""One turn of a task: a message of its caller becomes a call, and the call's result the next state of the task."""

import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import orjson
from a2a.types.a2a_pb2 import Message, Task
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError, UnsupportedOperationError

from awp_publish.policy.call import Call, Result
from awp_publish.problems import InvalidInput, Problem, RateLimited, StoreUnavailable
from awp_publish.serve import a2a_states as states
from awp_publish.serve.a2a_exchange import A2aExchange
from awp_publish.serve.a2a_following import Following
from awp_publish.serve.a2a_messages import Asked, Before, Chosen, Skills, read_message
from awp_publish.serve.a2a_runs import Run, Runs
from awp_publish.serve.a2a_tasks import Kept, Tasks, most_bytes, put_if_possible
from awp_publish.serve.credentials import read_credentials
from awp_publish.serve.envelope import read_admission
from awp_publish.serve.live import Surroundings

DOOR: Final = "a2a"
LATEST_RECORD: Final = 60.0
"""Seconds beyond an action's own deadline for which its task is kept as one that is being worked on."""

LONGEST_ID: Final = 255
"""Characters of an id that callers choose."""


@dataclass(slots=True)
class Turn:
    """A message, the task that it belongs to, and the call that it became; or the problem why it became none.

    `is_new` says that the task began with this message: then nothing has to be kept of it if its call is refused.
    """

    kept: Kept
    exchange: A2aExchange
    is_new: bool
    call: Call | None = None
    problem: Problem | None = None


class Callers:
    """Who makes a request, for what is no call of an action."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._gate = surroundings.enforcement.identify()
        self._uncounted = replace(self._gate, store=None)
        self._trusted = surroundings.admission.trusted_proxies

    async def identify(self, exchange: A2aExchange, *, counted: bool = True) -> str:
        """The id of the caller, "" for nobody known. Raises a Problem for credentials that are not valid.

        Wrong ones are `counted` once for each request.
        """
        gate = self._gate if counted else self._uncounted
        principal = await gate(read_credentials(exchange.scope, exchange.fields, self._trusted))
        return principal.id if principal is not None else ""


class Turns:
    """Begins and ends turns of tasks."""

    def __init__(self, surroundings: Surroundings, tasks: Tasks, runs: Runs, following: Following) -> None:
        self._invoker = surroundings.invoker
        self._trusted = surroundings.admission.trusted_proxies
        self._seconds = surroundings.site.guarding.job_results
        self._has_jobs = surroundings.background is not None
        self._skills = Skills(surroundings.catalog)
        self._telling = states.telling_of(surroundings.catalog)
        self._callers = Callers(surroundings)
        self._tasks = tasks
        self._runs = runs
        self._following = following

    async def begin(self, message: Message, exchange: A2aExchange) -> Turn:
        """Read a message. Raises TaskNotFoundError, InvalidParamsError, UnsupportedOperationError, StoreUnavailable."""
        if max(len(message.message_id), len(message.context_id)) > LONGEST_ID:
            raise InvalidParamsError(f"messageId and contextId have at most {LONGEST_ID} characters.")
        before = await self._task_of(message, exchange)
        kept, is_new = _next_turn(before, message), before is None
        try:
            asked = read_message(exchange.document)
            chosen = self._skills.choose(asked, self._before(kept))
            call = self._call(chosen, asked, exchange)
        except Problem as problem:
            self._invoker.note_refusal(DOOR, exchange.request_id, problem)
            return Turn(kept, exchange, is_new, problem=problem)
        return Turn(replace(kept, skill=chosen.action.id, input=chosen.input), exchange, is_new, call)

    async def _task_of(self, message: Message, exchange: A2aExchange) -> Kept | None:
        if not message.task_id:
            return None
        kept = await self._tasks.find(message.task_id, await self._caller_of(exchange))
        kept = await self._following.refresh(kept)
        if message.context_id and message.context_id != kept.task.context_id:
            raise InvalidParamsError("The task belongs to another context.")
        if kept.task.status.state not in states.INTERRUPTED:
            raise UnsupportedOperationError("The task waits for no message: it has ended, or is being worked on.")
        return kept

    async def _caller_of(self, exchange: A2aExchange) -> str:
        try:
            return await self._callers.identify(exchange, counted=False)
        except Problem:
            return ""  # the call itself will say what is wrong with the credentials

    def _before(self, kept: Kept) -> Before | None:
        action = self._skills.find(kept.skill)
        return Before(action, kept.input) if action is not None else None

    def _call(self, chosen: Chosen, asked: Asked, exchange: A2aExchange) -> Call:
        call = Call(chosen.action, chosen.input, exchange.request_id, DOOR, exchange.scope, exchange.hang_up)
        if self._invoker.is_guarded(chosen.action):
            call.credentials = partial(read_credentials, exchange.scope, exchange.fields, self._trusted)
            read_admission(call, asked.members, exchange.fields)
        return call

    # --- The end of a turn ---

    def is_background(self, turn: Turn) -> bool:
        """Whether the turn's call becomes a job."""
        return self._has_jobs and turn.call is not None and turn.call.action.is_background

    async def carry_out(self, turn: Turn) -> Kept:
        """Make the turn's call, and say what became of the task."""
        if turn.call is None:
            return await self._settle(turn, turn.problem or Problem("The message is no call."))
        run = Run(turn.call, turn.exchange, partial(self._settle, turn))
        return await self._runs.start(turn.kept.task.id, run).wait()

    async def announce(self, turn: Turn, call: Call) -> None:
        """Write down that the task is being worked on, unless it has one too many, which is the turn's problem then.

        A known caller's job needs that only once there is a job. Raises UnsupportedOperationError if the task is being
        worked on already.
        """
        owner = await self._caller_of(turn.exchange) or turn.kept.owner
        if owner and self.is_background(turn):
            return
        states.set_state(turn.kept.task, states.WORKING)
        begun = replace(turn.kept, owner=owner, input=None)
        seconds = call.action.timeout + LATEST_RECORD
        try:
            kept = await self._tasks.put(begun, seconds, self._address_of(turn.exchange))
        except RateLimited as problem:
            self._invoker.note_refusal(DOOR, turn.exchange.request_id, problem)
            turn.call, turn.problem = None, problem
            return
        if kept is None:
            raise UnsupportedOperationError("The task is being worked on for another message.")
        turn.kept = replace(kept, input=turn.kept.input)

    async def _settle(self, turn: Turn, result: Result) -> Kept:
        task, call = turn.kept.task, turn.call
        job = "" if isinstance(result, Problem) or not self.is_background(turn) else _job_in(result.body)
        added = call.headers if call is not None else ()
        if isinstance(result, Problem):
            states.fail(task, result, self._telling, turn.exchange.request_id, added)
        elif job:
            states.submit(task, added)
        else:
            states.complete(task, result.body, (*result.headers, *added))
            turn.exchange.cookies = tuple(pair for pair in result.headers if pair[0] == b"set-cookie")
        owner = (call.caller_id if call is not None else "") or turn.kept.owner
        given = turn.kept.input if task.status.state in states.INTERRUPTED else None
        if call is not None and isinstance(result, InvalidInput):
            given = None  # it has to be said again in any case
        elif given is not None and len(orjson.dumps(given)) > most_bytes(owner) // 2:
            given = None
            states.say(task, "The input is too large to be kept until then: send it again in that message.")
        return await self._keep(turn, replace(turn.kept, owner=owner, input=given, job=job))

    async def _keep(self, turn: Turn, kept: Kept) -> Kept:
        """Keep what a turn made of its task, unless that began and ended with a refusal: then nothing was done."""
        if turn.is_new and kept.task.status.state == states.REJECTED:
            if kept.raw:
                with suppress(StoreUnavailable):
                    await self._tasks.remove(kept)
            return kept
        try:
            seconds, address = self._following.seconds_of(kept), self._address_of(turn.exchange)
            stored = await put_if_possible(self._tasks, kept, seconds, address)
        except RateLimited as problem:
            if kept.task.status.state == states.INPUT_REQUIRED:  # nobody could go on with it
                states.fail(kept.task, problem, self._telling, turn.exchange.request_id)
            return kept
        if stored is not None:
            return stored
        try:
            return await self._tasks.find(kept.task.id, kept.owner)  # another message was quicker
        except TaskNotFoundError:
            return kept

    def _address_of(self, exchange: A2aExchange) -> str:
        return read_credentials(exchange.scope, exchange.fields, self._trusted).address


def _next_turn(before: Kept | None, message: Message) -> Kept:
    """The task with one more message in its history; a new task if there was none."""
    task = Task()
    if before is not None:
        task.CopyFrom(before.task)
        task.history.append(task.status.message)
        task.status.ClearField("message")
    else:
        task.id, task.context_id = str(uuid.uuid4()), message.context_id or str(uuid.uuid4())
    said = task.history.add()
    said.CopyFrom(message)
    said.task_id, said.context_id = task.id, task.context_id
    states.keep_recent(task)
    return Kept(task) if before is None else replace(before, task=task)


def _job_in(body: bytes) -> str:
    accepted = orjson.loads(body)
    return str(accepted["job_id"]) if isinstance(accepted, dict) and "job_id" in accepted else ""
