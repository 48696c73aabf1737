"""A real server in a thread, and the ends of its connections: raw bytes, and a page's websocket."""

import asyncio
import contextlib
import json
import re
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest

pytest.importorskip("uvicorn")
websockets = pytest.importorskip("websockets")

from condensation.cli._play import listen  # noqa: E402
from condensation.playground._connections import PageServer  # noqa: E402
from condensation.playground._library import Library  # noqa: E402
from condensation.playground._messages import unpack  # noqa: E402
from condensation.playground._server import Server, config_of  # noqa: E402

UPGRADE = (
    b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


PATIENCE = 60.0  # seconds of a client that nobody answers; a machine may be busy
CLOSE = b"Connection: close\r\n\r\n"


def status(answer):
    """The status of an answer; None if there is none."""
    found = re.match(rb"HTTP/1\.1 (\d+) ", answer)
    return int(found[1]) if found else None


def frame(opcode, payload, first=0x80):
    """A masked frame (the mask is zero); ``first`` has the flags."""
    length = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
    return bytes([first | opcode]) + length + bytes(4) + payload


def everything(link):
    """All bytes until the other side closes; ``b"..."`` with TIMED OUT at the end if it does not."""
    said = b""
    try:
        while part := link.recv(65536):
            said += part
    except TimeoutError:
        said += b"TIMED OUT"
    except ConnectionError:
        pass
    return said


class Running:
    """A server on a free port, for as long as a test module lasts."""

    def __init__(self, access, library=None, **changes):
        self.access, self.listening = access, listen("127.0.0.1", 0)
        self.port = self.listening.getsockname()[1]
        self.page_server = Server(access, library or Library())
        config = config_of(self.page_server)
        for name, value in changes.items():
            setattr(config, name, value)
        self.server = PageServer(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listening]}, daemon=True)
        self.thread.start()

    def get(self, path="/", **headers):
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read()

    def connect(self, origin=None, path="/live", local="127.0.0.1", **headers):
        own = f"http://127.0.0.1:{self.port}"
        return websockets.connect(
            f"ws://127.0.0.1:{self.port}{path}",
            origin=own if origin is None else origin,
            max_size=None,
            additional_headers=headers,
            local_addr=(local, 0),
        )

    def raw(self, *parts, patience=PATIENCE, buffer=None):
        """The open socket of a client that has sent some bytes; ``buffer`` bytes wait there at most."""
        link = socket.socket()
        if buffer is not None:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        link.settimeout(patience)
        link.connect(("127.0.0.1", self.port))
        for part in parts:
            link.sendall(part)
        return link

    def said(self, *parts, patience=PATIENCE):
        """All that the server says until it closes the connection."""
        with self.raw(*parts, patience=patience) as link:
            return everything(link)

    @property
    def host(self):
        return f"Host: 127.0.0.1:{self.port}\r\n".encode()

    @property
    def upgrade(self):
        """The header of a page's websocket, without the empty line at its end."""
        return b"GET /live HTTP/1.1\r\n" + self.host + f"Origin: http://127.0.0.1:{self.port}\r\n".encode() + UPGRADE

    def frames(self, *frames):
        """A page's websocket that sends raw frames, each after what has come before; all that the server says."""
        with self.raw(self.upgrade + b"\r\n") as link:
            link.recv(1)
            for frame in frames:
                link.sendall(frame)
            return everything(link)

    def is_well(self):
        """Whether a good client gets the page, a hello, and an answer."""

        async def script(page):
            return (await page.ask(do="export"))[0]["sentence"]

        cookie = {"Cookie": f"condensation_token_{self.port}={self.access.token}"}
        return self.get(**cookie)[0] == 200 and visit(self, script, **cookie) == "nothing is opened yet"

    def recovers(self):
        """Whether a good client is served in the end, where the server waits so shortly that it may miss one."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with contextlib.suppress(OSError, websockets.exceptions.WebSocketException):
                return self.is_well()
        return False

    def stop(self):
        self.server.should_exit = True
        self.thread.join(10)


class Page:
    """A page's end of the websocket."""

    def __init__(self, link):
        self.link, self.number = link, 0

    async def hello(self):
        return unpack(await self.link.recv())[0]

    async def ask(self, **request):
        self.number += 1
        await self.link.send(json.dumps({"id": self.number, **request}))
        header, arrays = unpack(await self.link.recv())
        assert header["id"] == self.number
        return header, arrays


def visit(server, script, **given):
    async def run():
        async with server.connect(**given) as link:
            page = Page(link)
            await page.hello()
            return await script(page)

    return asyncio.run(run())


def closed_with(server, **given):
    async def run():
        async with server.connect(**given) as link:
            try:
                await link.recv()
            except websockets.ConnectionClosed as end:
                return end.rcvd.code, end.rcvd.reason
        return 0, ""

    return asyncio.run(run())
