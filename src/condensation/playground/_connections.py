"""Connections under bounds: how many there may be, how long a request may take to come, and what a message may be.

uvicorn has a time-out for idle connections between two requests only, and none that a byte now and then does not put
off. So its two protocols are derived here:

- A request must have come and been answered within ``PATIENCE`` seconds, whatever is sent meanwhile. A websocket that
  should be closed is, even if its client does not read.
- There are at most ``most_connections()`` at a time, and half as many of one client. One that comes beyond that takes
  the place of the one that has been without an answer for longest: so half-open requests do not keep out whole ones.
  The websockets of pages stay.
- A message that is not text in UTF-8 closes its websocket with a sentence.
"""

import codecs
import socket
from asyncio import TimerHandle
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ._access import client_of

PATIENCE = 20.0  # seconds
MOST_CONNECTIONS = 256
AT_ONCE = 16  # connections accepted at once; about four times as many can be open before those beyond the bound close
QUEUE = 128  # connections that the system keeps for us until they are accepted
DESCRIPTORS = 3  # of the files that the process may open, one in so many is for connections
NOT_TEXT, NOT_UTF8 = 1003, 1007


def most_connections() -> int:
    """Connections that may be open at a time: fewer where the process may open few files."""
    try:
        import resource
    except ImportError:  # not a Unix
        return MOST_CONNECTIONS
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_CONNECTIONS if limit == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, limit // DESCRIPTORS)


class PageServer(uvicorn.Server):
    """uvicorn's server, with more connections in the queue than are accepted at once."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(QUEUE)


class PageHTTP(H11Protocol):
    """A connection that asks for files of the page, and may become a websocket."""

    since = 0.0  # when it was opened, or got its last answer
    timer: TimerHandle | None = None

    @property
    def yields(self) -> bool:
        """Whether another connection may take its place."""
        return not self.transport.is_closing()

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request, and make room."""
        super().connection_made(transport)
        self._wait()
        open_ones = [one for one in self.connections if isinstance(one, PageHTTP | PageSocket)]
        own = [one for one in open_ones if _client(one) == _client(self)]
        for group, most in ((own, most_connections() // 2), (open_ones, most_connections())):
            if sum(not one.transport.is_closing() for one in group) > most:
                min((one for one in group if one.yields), key=lambda one: one.since).transport.abort()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._wait()
        super().on_response_complete()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Leave the connection to the websocket."""
        _cancel(self.timer)
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        _cancel(self.timer)
        super().connection_lost(exc)

    def _wait(self) -> None:
        _cancel(self.timer)
        self.since = self.loop.time()
        self.timer = self.loop.call_later(PATIENCE, self.transport.abort)


class PageSocket(WebSocketsSansIOProtocol):
    """The websocket of a page."""

    since = 0.0
    timer: TimerHandle | None = None
    decoder: codecs.IncrementalDecoder | None = None  # of the message that comes in

    @property
    def yields(self) -> bool:
        """Whether another connection may take its place: it is refused, or was never opened."""
        return not self.transport.is_closing() and (self.close_sent or not self.handshake_complete)

    def connection_made(self, transport: Any) -> None:
        """Begin to look whether it is open."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._look(ended=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        _cancel(self.timer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; a header that is too long for a websocket is answered, which uvicorn leaves to us."""
        super().data_received(data)
        if not self.handshake_initiated:
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.transport.close()

    def _look(self, ended: bool) -> None:
        """End what should have ended at the last look already: closing waits for a client that does not read."""
        ends = self.transport.is_closing() or self.close_sent or not self.handshake_complete
        if ended and ends:
            self.transport.abort()
        else:
            self.timer = self.loop.call_later(PATIENCE, self._look, ends)

    def handle_text(self, event: Any) -> None:
        """Take the first frame of a text."""
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        if self._is_text(event):
            super().handle_text(event)

    def handle_cont(self, event: Any) -> None:
        """Take another frame of a text."""
        if self._is_text(event):
            super().handle_cont(event)

    def handle_bytes(self, event: Any) -> None:
        """Refuse bytes."""
        self.decoder = None
        self._refuse(NOT_TEXT, "a request is text, not bytes")

    def handle_ping(self) -> None:
        """Answer a ping, but pile up no answers for a client that does not read them."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def _is_text(self, event: Any) -> bool:
        try:
            return self.decoder is not None and self.decoder.decode(event.data, event.fin) is not None
        except UnicodeDecodeError:
            self.decoder = None
            self._refuse(NOT_UTF8, "a request is text in UTF-8")
            return False

    def _refuse(self, code: int, reason: str) -> None:
        if not self.close_sent:
            self.conn.send_close(code, reason)
            self.handle_parser_exception()


def _client(connection: PageHTTP | PageSocket) -> str:
    return client_of(connection.client)


def _cancel(timer: TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
