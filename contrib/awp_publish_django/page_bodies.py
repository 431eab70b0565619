"""The HTML of a view's response, read as a whole if it is small enough."""

from collections.abc import AsyncIterator
from itertools import chain

from asgiref.sync import sync_to_async
from django.http.response import HttpResponseBase, StreamingHttpResponse

from awp_publish.plugins.pages.page_request import NegotiatedRequest
from awp_publish.plugins.pages.rendering import MAX_PAGE_BYTES
from awp_publish_django.responses import headers_of


def body_of(negotiated: NegotiatedRequest, response: HttpResponseBase) -> bytes | None:
    """The whole page; None if it is no page or too large, in which case the response can still be sent as it is."""
    if not negotiated.takes(response.status_code, headers_of(response)):
        return None
    if not isinstance(response, StreamingHttpResponse):
        return _content_of(response)
    return _collect(response)


async def body_of_async(negotiated: NegotiatedRequest, response: HttpResponseBase) -> bytes | None:
    if not negotiated.takes(response.status_code, headers_of(response)):
        return None
    if not isinstance(response, StreamingHttpResponse):
        return _content_of(response)
    return await _collect_async(response) if response.is_async else await sync_to_async(_collect)(response)


def _content_of(response: HttpResponseBase) -> bytes | None:
    content: bytes = response.content  # type: ignore[attr-defined]
    return content if len(content) <= MAX_PAGE_BYTES else None


def _collect(response: StreamingHttpResponse) -> bytes | None:
    parts, size, pieces = list[bytes](), 0, iter(response)
    for part in pieces:
        parts.append(part)
        size += len(part)
        if size > MAX_PAGE_BYTES:
            response.streaming_content = chain(parts, pieces)
            return None
    return b"".join(parts)


async def _collect_async(response: StreamingHttpResponse) -> bytes | None:
    parts, size, pieces = list[bytes](), 0, aiter(response)
    async for part in pieces:
        parts.append(part)
        size += len(part)
        if size > MAX_PAGE_BYTES:

            async def all_parts() -> AsyncIterator[bytes]:
                for part in parts:
                    yield part
                async for part in pieces:
                    yield part

            response.streaming_content = all_parts()
            return None
    return b"".join(parts)
