"""Bearer tokens, API keys, sessions, users of the application, and functions of the site's own."""

import asyncio
import logging
import threading
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from starlette.authentication import SimpleUser, UnauthenticatedUser

from awp_publish.calls.application_users import ApplicationUser, SessionUser
from awp_publish.calls.authenticators import published_facts, read_authenticators
from awp_publish.calls.call import Credentials, Principal
from awp_publish.calls.sent_secrets import ApiKey, BearerToken
from awp_publish.calls.verifiers import Custom
from awp_publish.problems import DeclarationError, InvalidCredentials

SECRET = "k-8f14e45fceea167a"
PARTNER = Principal("partner", frozenset({"books:read"}))


async def knows_later(secret: str) -> Principal | None:
    return PARTNER if secret == SECRET else None


class Checker:
    """An object with an async `__call__`, as dependency injection likes them."""

    async def __call__(self, secret: str) -> Principal | None:
        return await knows_later(secret)


CHECKS = [
    pytest.param(knows_later, id="async"),
    pytest.param(lambda secret: PARTNER if secret == SECRET else None, id="plain"),
    pytest.param(lambda secret: knows_later(secret), id="plain that answers a coroutine"),
    pytest.param(Checker(), id="object"),
    pytest.param(lambda secret: "partner" if secret == SECRET else False, id="id or False"),
    pytest.param({SECRET: PARTNER, "another": "else"}, id="mapping"),
    pytest.param({SECRET: "partner"}, id="mapping to ids"),
]
KINDS = [
    pytest.param(BearerToken, "authorization", f"Bearer {SECRET}", "Bearer unknown", id="bearer"),
    pytest.param(ApiKey, "x-api-key", SECRET, "unknown", id="api key"),
]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(("kind", "header", "right", "wrong"), KINDS)
async def test_a_known_secret_tells_the_caller_and_an_unknown_one_is_refused(kind, header, right, wrong, check):
    authenticator = kind(check)
    caller = await authenticator(Credentials({header: right}))
    assert caller is not None
    assert caller.id == "partner"
    assert await authenticator(Credentials({})) is None
    with pytest.raises(InvalidCredentials) as refusal:
        await authenticator(Credentials({header: wrong}))
    assert "unknown" not in str(refusal.value)


async def test_a_plain_check_does_not_run_on_the_event_loop():
    threads = []

    def check(token: str) -> str:
        threads.append(threading.current_thread())
        return "partner"

    await BearerToken(check)(Credentials({"authorization": "Bearer abc"}))
    assert threads != [threading.main_thread()]


@pytest.mark.parametrize("spelling", ["bearer", "BEARER", "Bearer "])
async def test_the_scheme_is_read_in_any_case(spelling):
    credentials = Credentials({"authorization": f"{spelling} {SECRET}"})
    assert await BearerToken({SECRET: "partner"})(credentials) == Principal("partner", issuer="bearer-token")


@pytest.mark.parametrize("value", ["Basic dXNlcjpwYXNz", "Digest username=x", "BearerX abc", "", " "])
async def test_other_schemes_are_not_our_business(value):
    assert await BearerToken({SECRET: "partner"})(Credentials({"authorization": value})) is None


@pytest.mark.parametrize(
    "value",
    [
        "Bearer",
        "Bearer ",
        "Bearer a b",
        "Bearer a,b",
        'Bearer "abc"',
        "Bearer =abc",
        f"Bearer {SECRET}, Bearer {SECRET}",
        f"Basic abc, Bearer {SECRET}",
        "Bearer a\nb",
        "Bearer é",
    ],
)
async def test_a_malformed_token_is_refused_without_being_shown_to_the_check(value):
    seen: list[str] = []
    with pytest.raises(InvalidCredentials) as refusal:
        await BearerToken(lambda token: seen.append(token))(Credentials({"authorization": value}))
    assert seen == []
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize("value", ["", " ", "a b", f"{SECRET}, {SECRET}", "é"])
async def test_a_malformed_key_is_refused(value):
    with pytest.raises(InvalidCredentials):
        await ApiKey({SECRET: "partner"})(Credentials({"x-api-key": value}))


@given(st.binary().map(lambda raw: raw.decode("latin-1")) | st.text('bearBEAR ,="\\.\t\nxy', max_size=30))
def test_any_header_holds_no_credentials_or_wrong_ones(value):
    async def ask() -> None:
        for authenticator in (
            BearerToken({SECRET: "partner"}),
            ApiKey({SECRET: "partner"}, header="Authorization-Key"),
        ):
            credentials = Credentials({"authorization": value, "authorization-key": value})
            with suppress(InvalidCredentials):
                assert await authenticator(credentials) is None

    asyncio.run(ask())


async def test_the_key_stands_in_the_header_that_the_site_names():
    authenticator = ApiKey({SECRET: "partner"}, header="X-Shop-Key")
    assert await authenticator(Credentials({"x-shop-key": SECRET})) == Principal("partner", issuer="api-key:x-shop-key")
    assert await authenticator(Credentials({"x-api-key": SECRET})) is None
    assert authenticator.challenge == 'ApiKey header="X-Shop-Key"'


@pytest.mark.parametrize("kind", [BearerToken, ApiKey])
def test_secrets_are_in_no_representation(kind):
    assert SECRET not in repr(kind({SECRET: "partner"}))


@pytest.mark.parametrize(
    "declare",
    [
        lambda: BearerToken({}),
        lambda: BearerToken({SECRET + " with spaces": "partner"}),
        lambda: BearerToken({SECRET: ""}),
        lambda: BearerToken({SECRET: 7}),  # type: ignore[dict-item]
        lambda: BearerToken(SECRET),  # type: ignore[arg-type]
        lambda: BearerToken(Checker),  # type: ignore[arg-type]
        lambda: ApiKey({SECRET: "partner"}, header="X API Key"),
        lambda: ApiKey({SECRET: "partner"}, header=""),
        lambda: ApiKey({SECRET: "partner"}, header="Cookie"),
        lambda: ApiKey({SECRET: "partner"}, header="Authorization"),
        lambda: ApiKey({SECRET: "partner"}, header="Proxy-Authorization"),
        lambda: ApiKey({SECRET: "partner"}, header="Host"),
        lambda: SessionUser(""),
        lambda: SessionUser(principal="user_id"),  # type: ignore[arg-type]
        lambda: Custom(SECRET),  # type: ignore[arg-type]
        lambda: read_authenticators(SECRET),
        lambda: read_authenticators([BearerToken({SECRET: "partner"}), 7]),
        lambda: read_authenticators(ApplicationUser),
    ],
)
def test_mistakes_are_refused_at_the_start_with_a_remedy_and_without_the_secret(declare):
    with pytest.raises(DeclarationError) as refusal:
        declare()
    assert refusal.value.subject == "site"
    assert refusal.value.remedy
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize("answer", ["", Principal("")])
async def test_nobody_is_nameless(answer):
    with pytest.raises(InvalidCredentials):
        await BearerToken(lambda token: answer)(Credentials({"authorization": "Bearer abc"}))


# --- The application's own ---


async def test_a_session_tells_its_user():
    authenticator = SessionUser()
    assert await authenticator(Credentials({}, session={"user_id": 7})) == Principal("7", issuer="session")
    assert await authenticator(Credentials({}, session={})) is None
    assert await authenticator(Credentials({}, session={"user_id": None})) is None
    assert await SessionUser("account")(Credentials({}, session={"account": "anna"})) == Principal(
        "anna", issuer="session"
    )


async def test_a_function_of_the_session_may_tell_its_user():
    authenticator = SessionUser(principal=lambda session: PARTNER if "login" in session else None)
    assert await authenticator(Credentials({}, session={"login": 1})) == replace(PARTNER, issuer="session")
    assert await authenticator(Credentials({}, session={})) is None


@pytest.mark.parametrize("authenticator", [SessionUser(), ApplicationUser()], ids=["session", "user"])
async def test_a_missing_middleware_is_told_once(authenticator, caplog):
    for _ in range(3):
        assert await authenticator(Credentials({})) is None
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("awp_publish.calls", logging.ERROR)
    assert "Middleware" in record.message


class DjangoUser:
    is_authenticated = True
    pk = 42
    username = "anna"
    scopes = "books:read books:write"


class OldUser:
    """Answers with methods, and does not fill in everything."""

    display_name = "Anna"

    def is_authenticated(self) -> bool:
        return True

    @property
    def identity(self) -> str:
        raise NotImplementedError


async def test_the_user_of_the_application_is_the_caller():
    authenticator = ApplicationUser()
    assert await authenticator(Credentials({}, user=UnauthenticatedUser())) is None
    assert await authenticator(Credentials({}, user=object())) is None
    granted = Credentials({}, user=SimpleUser("anna"), scopes=frozenset({"authenticated"}))
    assert await authenticator(granted) == Principal("anna", frozenset({"authenticated"}), issuer="application-user")
    expected = Principal("42", frozenset({"books:read", "books:write"}), issuer="application-user")
    assert await authenticator(Credentials({}, user=DjangoUser())) == expected
    assert await authenticator(Credentials({}, user=OldUser())) == Principal("Anna", issuer="application-user")


class NamelessUser:
    is_authenticated = True


async def test_a_user_without_any_name_is_a_mistake_and_nobodys_caller():
    with pytest.raises(LookupError, match="NamelessUser"):
        await ApplicationUser()(Credentials({}, user=NamelessUser()))


async def test_a_function_of_the_sites_own_knows_callers():
    (authenticator,) = read_authenticators(lambda credentials: credentials.address)
    assert await authenticator(Credentials({}, "192.0.2.1")) == Principal("192.0.2.1", issuer="own")
    assert await authenticator(Credentials({})) is None


# --- What is published ---


def test_manifests_say_the_first_scheme_and_every_method_once():
    session, user, key, bearer = SessionUser(), ApplicationUser(), ApiKey({"k": "a"}), BearerToken({"k": "a"})
    given = read_authenticators([session, user, key, bearer, lambda credentials: None])
    assert published_facts(given) == ("api_key", ("session", "api_key", "bearer", "custom"))
    assert published_facts(read_authenticators(session)) == (None, ("session",))
    assert published_facts(read_authenticators(user)) == (None, ("session",))
    assert published_facts(read_authenticators(None)) == (None, ())
