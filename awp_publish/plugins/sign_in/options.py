"""The options of sign-in: where people sign in, who they are, and what they may allow."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator

from awp_publish.calls.call import Principal
from awp_publish.plugins.sign_in.redirects import why_refused
from awp_publish.schema.options import SCOPE, Count, Flag, LazyAdapter, Link, Text, strict, unpack

MIN_SECRET: Final = 32
"""Characters of a client's secret."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who is signed in: the `id` under which the site knows them for ever, and a `name` to show."""

    id: str
    name: str = ""


Found: TypeAlias = Person | Principal | str | None
"""Who is signed in: a Person, a Principal, an id, or None for nobody."""


def _check_scopes(scopes: Mapping[str, str]) -> Mapping[str, str]:
    for name in scopes:
        if not re.fullmatch(SCOPE, name):
            raise ValueError(f'{name!r} is not a scope; write scopes={{"orders": "See and place orders"}}')
    return dict(scopes)


def _check_callable(expected: str, value: object) -> object:
    if value is not None and (isinstance(value, type) or not callable(value)):
        raise ValueError(f"must be {expected}")
    return value


_check_user: Final = partial(_check_callable, 'SessionUser("user_id"), ApplicationUser() or a function of the request')
_check_function: Final = partial(_check_callable, "a function of a Person that returns headers")


def _check_redirects(redirects: Sequence[str]) -> tuple[str, ...]:
    for address in redirects:
        if reason := why_refused(address):
            raise ValueError(f"{address!r} {reason}")
    return tuple(redirects)


def _check_secret(secret: str | None) -> str | None:
    if secret is not None and len(secret) < MIN_SECRET:
        raise ValueError(f"must have at least {MIN_SECRET} characters; secrets.token_urlsafe(32) makes one")
    return secret


def _check_hosts(hosts: Sequence[str]) -> tuple[str, ...]:
    for host in hosts:
        if not re.fullmatch(r"[a-z0-9.-]+(:\d+)?", host):
            raise ValueError(f'{host!r} is not a host; write trusted_hosts=["claude.ai"]')
    return tuple(hosts)


@strict
@dataclass(frozen=True, slots=True)
class Client:
    """Software that the owner of a site knows, and that may ask people for access without registering.

    `redirects` are the addresses to which people may be sent back; a program on the person's own machine has a loopback
    address, of which any port is accepted. With a `secret` it has to authenticate, or with its `key`, whose public part
    is given as a JWK, a JWK set, PEM, or the https address of a set (`private_key_jwt`; extra `jwt`); with `scopes` it
    may then also get tokens of its own, without a person, for these scopes (`client_credentials`).
    """

    id: Text
    name: Text
    redirects: Annotated[Sequence[str], AfterValidator(_check_redirects)] = ()
    secret: Annotated[str | None, AfterValidator(_check_secret)] = field(default=None, repr=False)
    scopes: Sequence[Text] = ()
    key: Mapping[str, Any] | str | None = field(default=None, repr=False, hash=False)


_CLIENT: Final[LazyAdapter[Client]] = LazyAdapter(Client)


def _check_clients(clients: Sequence[object]) -> tuple[Client, ...]:
    checked = tuple(_CLIENT.validate_python(unpack(client)) for client in clients)
    if len({client.id for client in checked}) != len(checked):
        raise ValueError("two clients have the same id")
    for client in checked:
        if client.key is not None and client.secret is not None:
            raise ValueError(f"{client.id!r} has a secret and a key; give it one of them")
    return checked


@strict
@dataclass(frozen=True, slots=True)
class SignIn:
    """People allow agents to act for them, on the site's own pages.

    `login` is the path of the site's login page, and `next` the name of its query parameter with the address to go on
    to; `logout`, if given, is where somebody who is not the person shown is sent first. `user` tells who is signed in:
    `SessionUser("user_id")`, `ApplicationUser()`, or a function of the request (a Starlette `Request`) that returns a
    Person, an id, or None; one that is not async runs in a thread. Under Django all of this is known.

    `scopes` are what a person may allow, each in the site's words. Without them a token stands for all that the person
    may do. An action's own `scopes=` name those that it needs.

    Calls with a token are made with the cookies that the person had when allowing them, or with the headers that
    `as_user` returns for the Person, None for somebody who may not sign in any more. Access tokens are valid for
    `minutes`, what a person has allowed for `days`.

    Clients are known by a metadata document at an https address, of `trusted_hosts` only if these are given; by
    registering, unless `register` is False; or because they are among `clients`. `remember` skips the question for a
    client that the same person has allowed the same before. `templates` is a folder with pages of your own.
    """

    login: Link | None = None
    user: Annotated[Callable[..., Any] | None, AfterValidator(_check_user)] = None
    scopes: Annotated[Mapping[str, Text], AfterValidator(_check_scopes)] = field(default_factory=dict, hash=False)
    as_user: Annotated[Callable[..., Any] | None, AfterValidator(_check_function)] = None
    clients: Annotated[Sequence[object], AfterValidator(_check_clients)] = ()
    trusted_hosts: Annotated[Sequence[str], AfterValidator(_check_hosts)] = ()
    register: Flag = True
    remember: Flag = True
    logout: Link | None = None
    next: Text = "next"
    minutes: Count = 60
    days: Count = 90
    templates: str | PathLike[str] | None = None
