"""The gate: who is let through, what the others are told, and what a check that fails does not give away."""

import asyncio
import re
import threading
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from awp_publish.calls.application_users import SessionUser
from awp_publish.calls.authentication import AuthenticationGate
from awp_publish.calls.authenticators import read_authenticators
from awp_publish.calls.call import Credentials, Principal
from awp_publish.calls.sent_secrets import ApiKey, BearerToken
from awp_publish.problems import (
    AuthenticationRequired,
    AuthExpired,
    HandlerFailed,
    InsufficientScope,
    InvalidCredentials,
    Problem,
    RateLimited,
    TemporarilyUnavailable,
)

READER = Principal("reader", frozenset({"books:read"}), issuer="bearer-token")
BEARER = BearerToken({"token-of-reader": READER})
KEY = ApiKey({"key-of-partner": "partner"})
SESSION = SessionUser()
NOBODY = Credentials({}, session={})


def make_gate(
    *authenticators: object, required: bool = True, scopes: tuple[str, ...] = (), **more
) -> AuthenticationGate:
    return AuthenticationGate(read_authenticators(authenticators), required, scopes, "Shop", **more)


def with_token(token: str, **more) -> Credentials:
    return Credentials({"authorization": f"Bearer {token}"}, **({"session": {}} | more))


async def refusal_of(gate: AuthenticationGate, credentials: Credentials) -> Problem:
    with pytest.raises(Problem) as refusal:
        await gate(credentials)
    return refusal.value


def challenges_in(problem: Problem) -> list[str]:
    return [value for name, value in problem.headers if name == "WWW-Authenticate"]


# --- Who is let through ---


async def test_the_first_who_knows_the_caller_wins():
    gate = make_gate(BEARER, KEY, SESSION)
    assert await gate(with_token("token-of-reader", session={"user_id": 7})) == READER
    assert await gate(Credentials({"x-api-key": "key-of-partner"}, session={"user_id": 7})) == Principal(
        "partner", issuer="api-key:x-api-key"
    )
    assert await gate(Credentials({}, session={"user_id": 7})) == Principal("7", issuer="session")


async def test_nobody_passes_where_nobody_is_needed():
    assert await make_gate(BEARER, SESSION, required=False)(NOBODY) is None


async def test_wrong_credentials_are_refused_even_where_none_are_needed():
    gate = make_gate(BEARER, SESSION, required=False)
    assert isinstance(await refusal_of(gate, with_token("wrong")), InvalidCredentials)


async def test_a_wrong_token_does_not_become_the_user_of_the_session():
    gate = make_gate(BEARER, SESSION)
    assert isinstance(await refusal_of(gate, with_token("wrong", session={"user_id": 7})), InvalidCredentials)


async def test_tokens_of_two_kinds_are_told_apart_by_asking_both():
    gate = make_gate(BEARER, BearerToken({"token-of-writer": "writer"}, people="writers"))
    assert await gate(with_token("token-of-reader")) == READER
    assert await gate(with_token("token-of-writer")) == Principal("writer", issuer="writers")
    refusal = await refusal_of(gate, with_token("wrong"))
    assert len(challenges_in(refusal)) == 1


async def test_an_expired_token_is_called_expired_whoever_else_does_not_know_it():
    def expire(token: str) -> None:
        raise AuthExpired("The token has expired.")

    for gate in (
        make_gate(BEARER, BearerToken(expire, people="former")),
        make_gate(BearerToken(expire, people="former"), BEARER),
    ):
        assert isinstance(await refusal_of(gate, with_token("old")), AuthExpired)


async def test_scopes_are_needed_all_of_them():
    assert await make_gate(BEARER, scopes=("books:read",))(with_token("token-of-reader")) == READER
    gate = make_gate(BEARER, scopes=("books:read", "orders:write", "orders:read"))
    refusal = await refusal_of(gate, with_token("token-of-reader"))
    assert isinstance(refusal, InsufficientScope)
    assert refusal.status == 403
    assert refusal.members == {"missing_scopes": ["orders:write", "orders:read"]}


async def test_scopes_need_a_caller_even_where_nobody_said_so():
    gate = make_gate(BEARER, required=False, scopes=("books:read",))
    assert isinstance(await refusal_of(gate, NOBODY), AuthenticationRequired)


# --- What the others are told ---


async def test_a_caller_without_credentials_is_told_every_kind_that_would_do_and_no_error():
    refusal = await refusal_of(make_gate(BEARER, KEY, SESSION), NOBODY)
    assert isinstance(refusal, AuthenticationRequired)
    assert challenges_in(refusal) == ['Bearer realm="Shop"', 'ApiKey header="X-API-Key"', "Cookie"]


async def test_a_wrong_token_is_told_so_in_the_challenge_of_its_kind():
    metadata = "https://shop.example/.well-known/oauth-protected-resource"
    gate = make_gate(BEARER, KEY, metadata_url=metadata)
    bearer, key = challenges_in(await refusal_of(gate, with_token("wrong")))
    assert bearer == (
        'Bearer realm="Shop", error="invalid_token", error_description="The bearer token is not known.", '
        f'resource_metadata="{metadata}"'
    )
    assert key == 'ApiKey header="X-API-Key"'
    bearer, _ = challenges_in(await refusal_of(gate, Credentials({"x-api-key": "wrong"})))
    assert bearer == f'Bearer realm="Shop", resource_metadata="{metadata}"'


async def test_missing_scopes_are_told_as_all_that_the_action_needs():
    gate = make_gate(BEARER, scopes=("books:read", "orders:write"))
    (bearer,) = challenges_in(await refusal_of(gate, with_token("token-of-reader")))
    assert bearer == 'Bearer realm="Shop", error="insufficient_scope", scope="books:read orders:write"'


async def test_one_exception_raised_again_and_again_does_not_gather_challenges():
    always = InvalidCredentials("No.", headers=[("Retry-After", "5")])

    def refuse(token: str) -> None:
        raise always

    gate = make_gate(BearerToken(refuse))
    for _ in range(3):
        refusal = await refusal_of(gate, with_token("any"))
        assert [name for name, _ in refusal.headers] == ["Retry-After", "WWW-Authenticate"]


PARAMETER = r'[a-z_]+="(?:[ !#-\[\]-~]|\\["\\])*"'
CHALLENGE = re.compile(rf"Bearer {PARAMETER}(?:, {PARAMETER})*")


@given(realm=st.text(), detail=st.text(), scope=st.text())
def test_a_challenge_is_a_header_whatever_stands_in_it(realm, detail, scope):
    def refuse(token: str) -> None:
        raise InvalidCredentials(detail)

    gate = AuthenticationGate((BearerToken(refuse),), True, (scope,), realm, "https://shop.example/metadata")
    (challenge,) = challenges_in(asyncio.run(refusal_of(gate, with_token("any"))))
    assert CHALLENGE.fullmatch(challenge)


# --- Checks that fail ---


def look_up(token: str) -> str:
    return {"known": "partner"}[token]


def exhaust(token: str) -> str:
    return next(name for name in ("partner",) if name == token)


async def look_up_later(token: str) -> str:
    return look_up(token)


def answer_a_number(token: str) -> str:
    return 7  # type: ignore[return-value]


@pytest.mark.parametrize("check", [look_up, exhaust, look_up_later, answer_a_number])
@pytest.mark.parametrize("required", [True, False])
async def test_a_check_that_fails_lets_nobody_pass_and_gives_no_secret_away(check, required, caplog):
    gate = make_gate(BearerToken(check), required=required)
    refusal = await refusal_of(gate, with_token("s3cret-token.of-anna~x"))
    assert isinstance(refusal, HandlerFailed)
    assert "Traceback" in caplog.text
    assert check.__name__ in caplog.text or check is answer_a_number
    for told in (caplog.text, str(refusal), str(refusal.headers)):
        assert "s3cret-token" not in told
    assert all(record.exc_info is None for record in caplog.records)


async def test_a_secret_with_signs_that_python_escapes_is_kept_out_of_the_log_too(caplog):
    key = r"back\slash'quote\'s"
    gate = make_gate(ApiKey(look_up))
    assert isinstance(await refusal_of(gate, Credentials({"x-api-key": key})), HandlerFailed)
    assert "slash" not in caplog.text


async def test_a_problem_of_the_sites_own_goes_to_the_caller_as_it_is():
    def refuse(token: str) -> None:
        raise RateLimited("Slower.")

    assert isinstance(await refusal_of(make_gate(BearerToken(refuse)), with_token("any")), RateLimited)


def hang_in_a_thread(released: threading.Event) -> Callable[[str], object]:
    return lambda token: released.wait(30)


def hang_on_the_loop(released: threading.Event) -> Callable[[str], object]:
    async def check(token: str) -> None:
        await asyncio.sleep(5)

    return check


@pytest.mark.parametrize("hang", [hang_in_a_thread, hang_on_the_loop])
async def test_a_check_that_hangs_is_not_waited_for(hang):
    released = threading.Event()
    refusal = await refusal_of(make_gate(BearerToken(hang(released)), timeout=0.05), with_token("any"))
    released.set()
    assert isinstance(refusal, TemporarilyUnavailable)
    assert ("Retry-After", "10") in refusal.headers


async def test_a_timeout_of_the_checks_own_is_a_failure_and_not_our_impatience():
    async def check(token: str) -> None:
        raise TimeoutError("the database did not answer")

    assert isinstance(await refusal_of(make_gate(BearerToken(check)), with_token("any")), HandlerFailed)


async def test_a_caller_who_leaves_ends_the_check():
    started, ended = asyncio.Event(), asyncio.Event()

    async def check(token: str) -> None:
        started.set()
        try:
            await asyncio.sleep(5)
        finally:
            ended.set()

    call = asyncio.create_task(make_gate(BearerToken(check))(with_token("any")))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert ended.is_set()


async def test_the_log_of_a_check_that_fails_is_short_however_many_words_were_sent(caplog):
    def fail(token: str) -> None:
        raise KeyError(token)

    words = ", ".join(f"word{number}" for number in range(10_000))
    shown = Credentials({"authorization": "Bearer a-secret", "cookie": words}, session={})
    assert isinstance(await refusal_of(make_gate(BearerToken(fail)), shown), HandlerFailed)
    assert "a-secret" not in caplog.text
    assert "word77" not in caplog.text
    assert "KeyError" in caplog.text
    assert "in fail" in caplog.text
    assert len(caplog.text) < 10_000
