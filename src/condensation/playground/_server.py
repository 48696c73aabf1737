"""The playground's server: the page's files, and one websocket a page."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.routing import Mount, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from ..errors import InputError
from ._access import Doors
from ._executors import Executors
from ._library import Library
from ._memory import MemoryTrimmer
from ._messages import pack
from ._session import Answer, Session
from ._settings import Settings
from ._tour import hello

PAGE = Path(__file__).parent / "page"
MOST_PAGES = 24  # fewer than programs are kept compiled
MOST_WAITING = 16  # requests of one page
MOST_CHARACTERS = 64 * 1024  # of a request
NO_TOKEN, WRONG_ORIGIN, FULL = 4401, 4403, 4429
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
log = logging.getLogger(__name__)


class Server:
    """All pages of one server."""

    def __init__(self, doors: Doors, shelf: Library) -> None:
        self.doors, self.shelf, self.lanes, self.memory = doors, shelf, Executors(), MemoryTrimmer()
        self.pages = 0
        self.hello = hello(shelf)

    def application(self) -> ASGIApp:
        """The application that uvicorn runs."""

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            warming = asyncio.create_task(self.lanes.slowly(warm))
            yield
            warming.cancel()
            self.lanes.close()

        routes = [WebSocketRoute("/live", self.live), Mount("/", StaticFiles(directory=PAGE, html=True))]
        return _Guard(Starlette(routes=routes, lifespan=lifespan), self.doors)

    async def live(self, socket: WebSocket) -> None:
        """One page, from its coming to its going."""
        await socket.accept()
        if not self.doors.is_own_page(socket.headers):
            await socket.close(WRONG_ORIGIN, "this websocket is for the playground's own page")
        elif not self.doors.knows_token(socket.query_params, socket.cookies, socket.headers):
            await socket.close(NO_TOKEN, "the address of the page needs its token")
        elif self.pages >= MOST_PAGES:
            await socket.close(FULL, f"{MOST_PAGES} pages are open already; close one")
        else:
            self.pages += 1
            try:
                await _Visit(self, socket).stay()
            finally:
                self.pages -= 1


def config_of(server: Server) -> uvicorn.Config:
    """How uvicorn serves it."""
    return uvicorn.Config(
        server.application(),
        log_level="warning",
        lifespan="on",
        ws="websockets-sansio",
        ws_max_size=MOST_CHARACTERS,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=1,
    )


class _Visit:
    """One page's requests, each answered by one message."""

    def __init__(self, server: Server, socket: WebSocket) -> None:
        self.server, self.lanes, self.socket = server, server.lanes, socket
        self.session = Session(server.shelf)
        self.turn, self.slow_turn, self.sending = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
        self.newest = 0  # of the requests for a layer: older ones that still wait are dropped
        self.tasks: set[asyncio.Task[None]] = set()

    async def stay(self) -> None:
        """Answer until the page goes."""
        try:
            await self._send(0, (self.server.hello, {}))
            while True:
                text = await self.socket.receive_text()
                if len(self.tasks) >= MOST_WAITING:
                    await self._send(_number(text), _refusal("too many requests are waiting: wait for their answers"))
                    continue
                task = asyncio.create_task(self._answer(text))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
        except (WebSocketDisconnect, RuntimeError):
            log.debug("a page has gone")
        finally:
            for task in self.tasks:
                task.cancel()

    async def _answer(self, text: str) -> None:
        try:
            answer = await self._do(_request(text))
        except InputError as error:
            answer = _refusal(str(error))
        except Exception as error:
            log.exception("a request failed: %s", text[:200])
            answer = _refusal(f"this could not be done: {type(error).__name__}: {error}")
        with suppress(WebSocketDisconnect, RuntimeError):  # the page has gone
            await self._send(_number(text), answer)

    async def _do(self, request: dict[str, Any]) -> Answer:
        session, lanes = self.session, self.lanes
        given = request.get
        match request.get("do"):
            case "frame":
                while session.must_prepare and session.will_train(request):
                    await lanes.compile(session.prepare)  # meanwhile the page may open something else
                async with self.turn:
                    return await lanes.quickly(session.frame, request, lanes.seconds())
            case "open":
                if self.server.memory.count():
                    await lanes.slowly(self.server.memory.give_back)
                async with self.turn:
                    return await lanes.quickly(session.open, given("words"))
            case "layer":
                self.newest += 1
                number = self.newest
                async with self.slow_turn:
                    if number < self.newest:
                        raise InputError("another layer was asked for since")
                    return await lanes.slowly(session.choose_layer, given("layer"), given("view"))
            case "run":
                async with self.turn, self.slow_turn:
                    return await lanes.slowly(session.open_run, given("name"), given("seed"))
            case "cell":
                async with self.turn, self.slow_turn:
                    return await lanes.slowly(session.open_cell, given("name"), given("cell"), given("seed", 0))
            case "sweep":
                async with self.slow_turn:
                    return await lanes.slowly(session.map, given("name"), given("quantity"), given("x"), given("y"))
            case "export":
                async with self.turn:
                    return await lanes.quickly(session.export)
            case other:
                raise InputError(f"a page can ask for frame, open, layer, run, cell, sweep or export, not {other!r}")

    async def _send(self, number: int, answer: Answer) -> None:
        header, arrays = answer
        message = pack({"id": number} | header, arrays)
        async with self.sending:
            await self.socket.send_bytes(message)


def _request(text: str) -> dict[str, Any]:
    try:
        request = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"a request is a JSON table: {error}") from error
    if not isinstance(request, dict):
        raise InputError("a request is a JSON table")
    return request


def _number(text: str) -> int:
    """The id of a request, 0 if it has none that can be read."""
    try:
        number = json.loads(text)["id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0
    return number if type(number) is int else 0


def _refusal(sentence: str) -> Answer:
    return {"kind": "error", "sentence": sentence}, {}


class _Guard:
    """Checks host and token of every request, and adds the page's headers."""

    def __init__(self, app: ASGIApp, doors: Doors) -> None:
        self.app, self.doors = app, doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        asked = HTTPConnection(scope)
        if not self.doors.knows_host(asked.headers):
            await PlainTextResponse("this server is known as localhost", 421)(scope, receive, send)
        elif scope["type"] == "websocket":  # refused by the page's own door, with a reason that it can show
            await self.app(scope, receive, send)
        elif not self.doors.knows_token(asked.query_params, asked.cookies, asked.headers):
            text = "This playground asks for its token: open the address that `condensation play` printed."
            await PlainTextResponse(text, 401)(scope, receive, send)
        elif "token" in asked.query_params and self.doors.token:
            response = RedirectResponse("/", 303)
            response.set_cookie(self.doors.cookie(asked.headers), self.doors.token, httponly=True, samesite="lax")
            await response(scope, receive, send)
        else:
            await self.app(scope, receive, _with_headers(send))


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return sent


def warm() -> None:
    """Compile what the first page needs, before it comes."""
    session = Session()
    session.open(Settings().words())
    session.choose_layer("dense1")
    session.frame({"steps": 0, "settled": True}, 1.0)
    session.prepare()
    session.frame({"steps": 1, "settled": True}, 1.0)
