"""Purchases by agents that read pages."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urljoin

import httpx
from selectolax.lexbor import LexborHTMLParser

from benchmarks.person import ACCOUNT
from benchmarks.purchase import COPIES, PARCEL, TITLE, Purchase


async def by_markdown(origin: str, http: httpx.AsyncClient) -> Purchase:
    """Buy on the pages as Markdown: links are followed, forms are sent as the page tells them."""

    def link(page: str, text: str) -> str:
        return str(re.findall(rf"\[{re.escape(text)}\]\(([^)]+)\)", page)[0])

    def form(page: str, button: str) -> tuple[str, str, dict[str, str]]:
        start, end = page.rindex("Form", 0, page.index(f"[button: {button}]")), page.index(f"[button: {button}]")
        method, address = re.findall(r"`(GET|POST) ([^`]+)`", page[start:end])[0]
        fields = re.findall(r"\[[\w ]+ `([^`]+)`[^\]:]*(?:: “([^”]*)”)?\]", page[start:end])
        return method, address, dict(fields)

    return await _on_pages(origin, http, "text/markdown", link, form, _markdown_facts)


async def by_html(origin: str, http: httpx.AsyncClient) -> Purchase:
    """Buy on the pages as browsers get them."""

    def link(page: str, text: str) -> str:
        links = LexborHTMLParser(page).css("a[href]")
        return urljoin(origin, next(link.attributes["href"] or "" for link in links if link.text().strip() == text))

    def form(page: str, button: str) -> tuple[str, str, dict[str, str]]:
        forms = LexborHTMLParser(page).css("form")
        found = next(form for form in forms if any(button in part.text() for part in form.css("button")))
        fields = {
            str(element.attributes["name"]): element.attributes.get("value") or ""
            for element in found.css("input, textarea")
        }
        return str(found.attributes["method"]).upper(), urljoin(origin, found.attributes["action"]), fields

    return await _on_pages(origin, http, "text/html", link, form, _html_facts)


def _markdown_facts(page: str) -> Mapping[str, Any]:
    [(title, copies, _)] = re.findall(r"\| \[([^\]]+)\][^|]+\| (\d+) \| (\S+) \|", page)
    total = re.findall(r"\| Total \|  \| \$([\d.]+) \|", page)[0]
    return {"title": title, "copies": int(copies), "total": total}


def _html_facts(page: str) -> Mapping[str, Any]:
    tree = LexborHTMLParser(page)
    values = {
        name: [element.text().strip() for element in tree.css(f"main .{name}")]
        for name in ("book-title", "book-quantity")
    }
    [title], [copies] = values["book-title"], values["book-quantity"]
    return {"title": title, "copies": int(copies), "total": tree.css("main .total-price")[0].text().strip("$ \n")}


async def _on_pages(
    origin: str,
    http: httpx.AsyncClient,
    accept: str,
    link: Callable[[str, str], str],
    form: Callable[[str, str], tuple[str, str, dict[str, str]]],
    facts: Callable[[str], Mapping[str, Any]],
) -> Purchase:
    http.headers["accept"] = accept
    http.follow_redirects = True

    async def follow(page: str, text: str) -> str:
        return (await http.get(link(page, text))).text

    async def send(page: str, button: str, given: Mapping[str, object]) -> str:
        method, address, fields = form(page, button)
        assert given.keys() <= fields.keys(), (button, fields)
        filled: dict[str, Any] = {**fields, **given}
        answer = await (http.get(address, params=filled) if method == "GET" else http.post(address, data=filled))
        assert answer.status_code == 200, answer.text
        return answer.text

    start = (await http.get(origin)).text
    inside = await send(await follow(start, "Sign in"), "Sign in", ACCOUNT)
    found = await send(inside, "Search", {"q": TITLE})
    basket = await send(await follow(found, TITLE), "Put in basket", {"quantity": COPIES})
    review = await follow(basket, "Check out")
    read, order = facts(review), await send(review, "Place the order", PARCEL)
    placed = facts(order)
    question = f"{read['copies']} x {read['title']} for ${read['total']}"
    total = round(float(placed["total"]) * 100)
    lines = [{"title": placed["title"], "quantity": placed["copies"]}]
    return Purchase(question, {"lines": lines, "total_cents": total})
