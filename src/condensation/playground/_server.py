"""The playground's server: the files of the page, and a websocket for each page."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

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
from ._access import Access, client_of
from ._clients import Client, Clients
from ._connections import AT_ONCE, PageHTTP, PageSocket
from ._executors import Executors
from ._frame import Answer
from ._library import Library
from ._log import log, spare_lines
from ._memory import MemoryTrimmer
from ._messages import pack
from ._presets import hello
from ._session import Session
from ._settings import Settings

PAGE = Path(__file__).parent / "page"
MOST_WAITING = 16  # requests of one page that are not answered yet
REFUSED = 0.005  # seconds that a page with too many requests waits for the next refusal
MOST_CHARACTERS = 64 * 1024  # of a request
NO_TOKEN, WRONG_ORIGIN, FULL = 4401, 4403, 4429
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; frame-ancestors {ancestors}; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
T = TypeVar("T")


class Server:
    """What all pages of one server share."""

    def __init__(self, access: Access, library: Library) -> None:
        self.access, self.library, self.executors, self.memory = access, library, Executors(), MemoryTrimmer()
        self.clients = Clients(shared=not access.loopback)
        self.hello = hello()

    def application(self) -> ASGIApp:
        """The application that uvicorn runs."""

        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            warming = asyncio.create_task(self.executors.run("slow", warm))
            yield
            warming.cancel()
            self.executors.close()

        routes = [
            WebSocketRoute("/live", self.live),
            WebSocketRoute("/{path:path}", WebSocket.close),  # files are not for websockets
            Mount("/", StaticFiles(directory=PAGE, html=True)),
        ]
        return _Guard(Starlette(routes=routes, lifespan=lifespan), self.access)

    async def live(self, socket: WebSocket) -> None:
        """Serve the websocket of one page, or close it with a reason."""
        await socket.accept()
        address = client_of(socket.client)
        if not self.access.is_own_page(socket.headers):
            await socket.close(WRONG_ORIGIN, "this websocket is for the playground's own page")
        elif not self.access.knows_token(socket.query_params, socket.cookies, socket.headers):
            await socket.close(NO_TOKEN, "the address of the page needs its token")
        elif reason := self.clients.refusal(address):
            await socket.close(FULL, reason)
        else:
            with self.clients.page(address) as client:
                await _Connection(self, socket, client).serve()


def config_of(server: Server) -> uvicorn.Config:
    """The configuration with which uvicorn runs a server."""
    config = uvicorn.Config(
        server.application(),
        log_level="warning",
        lifespan="on",
        http=PageHTTP,
        ws=PageSocket,
        ws_max_size=MOST_CHARACTERS,
        ws_per_message_deflate=False,
        backlog=AT_ONCE,
        proxy_headers=False,  # a client does not choose the address by which it is known
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    spare_lines()
    return config


class _Connection:
    """The connection to one page: each request gets one message as its answer."""

    def __init__(self, server: Server, socket: WebSocket, client: Client) -> None:
        self.server, self.executors, self.socket, self.client = server, server.executors, socket, client
        self.session = Session(server.library)
        self.turn, self.slow_turn, self.sending = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
        self.newest = 0  # number of the latest request for a layer: older ones that still wait are dropped
        self.tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Answer requests until the page disconnects."""
        try:
            await self._send(0, (self.server.hello | {"library": self.server.library.listed()}, {}))
            while True:
                await asyncio.sleep(0)  # the other pages have their turns, too, if this one sends without end
                request = _parse(await self.socket.receive_text())
                if len(self.tasks) >= MOST_WAITING:
                    await self._send(_number(request), _refusal("too many requests are waiting for their answers"))
                    await asyncio.sleep(REFUSED)
                    continue
                task = asyncio.create_task(self._answer(request))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
        except (WebSocketDisconnect, RuntimeError):
            log.debug("a page has disconnected")
        finally:
            for task in self.tasks:
                task.cancel()

    async def _answer(self, request: dict[str, Any]) -> None:
        try:
            answer = await self._do(request)
        except InputError as error:
            answer = _refusal(str(error))
        except Exception as error:
            log.exception("a request failed: %s", str(request)[:200])
            answer = _refusal(f"this request failed: {type(error).__name__}: {error}")
        with suppress(WebSocketDisconnect, RuntimeError):  # the page has disconnected
            await self._send(_number(request), answer)

    async def _do(self, request: dict[str, Any]) -> Answer:
        session, run, value = self.session, self._run, request.get
        match value("do"):
            case "frame":
                while session.must_compile(request):
                    await run("compiling", session.prepare)  # meanwhile the page may open another run
                async with self.turn:
                    return await run("frames", session.frame, request, self.executors.seconds())
            case "open":
                if self.server.memory.is_due():
                    await run("slow", self.server.memory.trim)
                async with self.turn:
                    return await run("frames", session.open, value("settings"))
            case "layer":
                number = self.newest = self.newest + 1
                async with self.slow_turn:
                    if number < self.newest:
                        raise InputError("the page has chosen another layer since")
                    return await run("slow", session.choose_layer, value("layer"), value("view"))
            case "run":
                async with self.turn, self.slow_turn:
                    return await run("slow", session.open_run, value("name"), value("seed"))
            case "cell":
                async with self.turn, self.slow_turn:
                    return await run("slow", session.open_cell, value("name"), value("cell"), value("seed", 0))
            case "sweep":
                async with self.slow_turn:
                    return await run("slow", session.map, value("name"), value("quantity"), value("x"), value("y"))
            case "export":
                async with self.turn:
                    return await run("frames", session.export)
            case other:
                raise InputError(
                    value("problem") or f"do is frame, open, layer, run, cell, sweep or export, not {other!r}"
                )

    async def _run(self, pool: str, work: Callable[..., T], *arguments: Any) -> T:
        """Run work in a thread pool when it is the client's turn there."""
        async with self.client.turns[pool]:
            return await self.executors.run(pool, work, *arguments)

    async def _send(self, number: int, answer: Answer) -> None:
        header, arrays = answer
        message = pack({"id": number} | header, arrays)
        async with self.sending:
            await self.socket.send_bytes(message)


def _parse(text: str) -> dict[str, Any]:
    """A request; for a text that is none, a table with its ``problem`` alone."""
    try:
        request = json.loads(text)
    except (ValueError, RecursionError) as error:
        return {"problem": f"a request is a JSON table: {error}"}
    return request if isinstance(request, dict) else {"problem": "a request is a JSON table"}


def _number(request: dict[str, Any]) -> int:
    """The id of a request; 0 if it has none."""
    number = request.get("id")
    return number if type(number) is int else 0


def _refusal(sentence: str) -> Answer:
    return {"kind": "error", "sentence": sentence}, {}


class _Guard:
    """Checks host and token of every request, and adds the page's headers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        if not self.access.knows_host(request.headers) and scope["type"] == "websocket":
            await send({"type": "websocket.close"})  # 403
        elif not self.access.knows_host(request.headers):
            await PlainTextResponse("this server is known as localhost", 421)(scope, receive, send)
        elif scope["type"] == "websocket":  # Server.live refuses it with a reason that the page can show
            await self.app(scope, receive, send)
        elif not self.access.knows_token(request.query_params, request.cookies, request.headers):
            text = "This playground needs its token: open the address that `condensation play` printed."
            await PlainTextResponse(text, 401)(scope, receive, send)
        elif "token" in request.query_params and self.access.token:
            rest = urlencode([pair for pair in request.query_params.multi_items() if pair[0] != "token"])
            response = RedirectResponse(f"/?{rest}" if rest else "/", 303)
            response.set_cookie(self.access.cookie(request.headers), self.access.token, httponly=True, samesite="lax")
            await response(scope, receive, send)
        else:
            await self.app(scope, receive, _with_headers(send, self.access.ancestors))


def _with_headers(send: Send, ancestors: str) -> Send:
    headers = {name: text.replace("{ancestors}", ancestors) for name, text in HEADERS.items()}

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(headers)
        await send(message)

    return send_with_headers


def warm() -> None:
    """Compile what the first page needs, before it connects."""
    session = Session()
    session.open(Settings().to_text())
    session.choose_layer("dense1")
    session.frame({"steps": 0, "settled": True}, 1.0)
    session.prepare()
    session.frame({"steps": 1, "settled": True}, 1.0)
