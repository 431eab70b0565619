"""Documents in process: in full, unchanged and compressed, beside a Starlette route and WhiteNoise."""

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import orjson

from awp_publish.http.exchange import AsgiApp
from benchmarks.measure import Answer, Case, Series, ask, interleave, on_each_loop, same
from benchmarks.shop import shop
from benchmarks.static_answers import DOCUMENT, WhiteNoiseFile, documents_inside, starlette_route
from benchmarks.table import Row, at_most, compare

GZIP: Final = ((b"accept-encoding", b"gzip"),)
KINDS: Final = ("200", "304", "gzip")
_ROUTES: Final = {"200": "route 200", "304": "route 200", "gzip": "route gzip"}
"""What each kind is measured beside. A route that returns bytes knows no conditions: it sends the whole again."""

NO_LIMIT: Final = "0.15 x this would be less than the least that any ASGI application takes; "


def documents(seconds: float) -> list[Row]:
    """A document wrapped outermost and through add_middleware; the 304 of WhiteNoise only informs."""
    with TemporaryDirectory() as folder:
        found = on_each_loop(lambda: _measure(Path(folder), seconds / 2))
    rows: list[Row] = []
    for kind in KINDS:
        what, mine, route = f"document {kind}", f"outermost {kind}", _ROUTES[kind]
        rows.append(compare(f"{what}, outermost", found, mine, route, "Starlette route", at_most(0.15)))
        rows.append(
            _beside_whitenoise(kind, compare(f"{what}, outermost", found, mine, f"whitenoise {kind}", "", None))
        )
        rows.append(
            compare(f"{what}, add_middleware", found, f"inside {kind}", route, "Starlette route", at_most(0.85))
        )
    return rows


def _beside_whitenoise(kind: str, row: Row) -> Row:
    if kind == "304":
        return replace(row, beside="WhiteNoise's own 304", details=NO_LIMIT + row.details)
    return replace(row, beside="WhiteNoise", limit=at_most(0.15))


async def _measure(folder: Path, seconds: float) -> dict[str, Series]:
    outermost, inside = shop("outermost"), documents_inside()
    own = await document_cases(outermost)
    static = await _whitenoise(folder, own)
    cases = [
        *_named("outermost", own.items()),
        *_named("inside", (await document_cases(inside)).items()),
        *[await _route(kind, own[kind]) for kind in ("200", "gzip")],
        *[await _static(kind, case, static) for kind, case in own.items()],
    ]
    return await interleave([replace(case, clock=time.thread_time) for case in cases], seconds)


def _named(place: str, cases: Iterable[tuple[str, Case]]) -> list[Case]:
    return [replace(case, name=f"{place} {kind}") for kind, case in cases]


async def document_cases(app: AsgiApp) -> dict[str, Case]:
    """The three requests for a document, by kind. Asserts their answers."""
    whole, packed = Case("", app, DOCUMENT), Case("", app, DOCUMENT, headers=GZIP)
    answer, compressed = await ask(whole), await ask(packed)
    assert answer.status == compressed.status == 200
    assert len(orjson.loads(answer.body)["agents"]) == 3
    assert dict(compressed.headers)[b"content-encoding"] == b"gzip"
    assert len(compressed.body) < len(answer.body)
    unchanged = Case("", app, DOCUMENT, headers=((b"if-none-match", dict(answer.headers)[b"etag"]),))
    await same(unchanged, Answer(304))
    return {"200": whole, "304": unchanged, "gzip": packed}


async def _route(kind: str, case: Case) -> Case:
    """A Starlette route that gives the same bytes."""
    answer = await ask(case)
    return await same(Case(f"route {kind}", starlette_route(answer.body, tuple(answer.headers)), DOCUMENT), answer)


async def _whitenoise(folder: Path, own: dict[str, Case]) -> AsgiApp:
    """WhiteNoise with the same document, and the compressed one beside it."""
    whole, packed = await ask(own["200"]), await ask(own["gzip"])
    file, packed_file = folder / "woa.json", folder / "woa.json.gz"
    file.write_bytes(whole.body)
    packed_file.write_bytes(packed.body)
    return WhiteNoiseFile(file, packed_file, tuple(whole.headers))


async def _static(kind: str, case: Case, static: AsgiApp) -> Case:
    """WhiteNoise asked for the same; it must answer with the same status and bytes."""
    return await same(replace(case, name=f"whitenoise {kind}", app=static), await ask(case))
