"""Floods of messages, of sockets, of work, and clients that are slow. The server stays up and serves the others."""

import asyncio
import contextlib
import itertools
import json
import logging
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

websockets = pytest.importorskip("websockets")

from serving import CLOSE, PATIENCE, Page, Running, everything, frame, status, visit  # noqa: E402

from condensation.playground import _connections, _server  # noqa: E402
from condensation.playground._access import Access  # noqa: E402
from condensation.playground._log import TIMES, Sparing  # noqa: E402
from condensation.playground._messages import unpack  # noqa: E402

# -- floods


def test_a_flood_of_messages_on_one_socket_is_answered_in_turn_with_another_page(server):
    """A page that asks five times is done before a flood of 20000 messages, which came first, is half answered."""
    count, answered, over = 20000, [0], threading.Event()

    def read(link):
        said = b""
        while not over.is_set():
            said = said[-10:] + link.recv(1 << 20)
            answered[0] += said.count(b'"error"')

    async def script(page):
        counts = []
        for _ in range(5):
            await page.ask(do="export")
            counts.append(answered[0])
        return counts

    with server.raw(server.upgrade + b"\r\n") as link:
        link.recv(1)
        reader = threading.Thread(target=read, args=(link,), daemon=True)
        reader.start()
        link.sendall(frame(1, b"[]") * count)
        counts = visit(server, script)
        over.set()
        reader.join()
    assert counts[-1] < count / 2


def test_a_flood_of_sockets_leaves_the_page_and_closes_the_rest_with_a_sentence(server):
    until = time.monotonic() + PATIENCE
    while server.page_server.clients.pages and time.monotonic() < until:  # those of the test before are being closed
        time.sleep(0.05)

    async def run():
        links = [await server.connect() for _ in range(40)]
        reasons = []
        for link in links:
            try:
                await link.recv()
            except websockets.ConnectionClosed as end:
                reasons.append((end.rcvd.code, end.rcvd.reason))
        answer = (await Page(links[0]).ask(do="export"))[0]["kind"]
        for link in links:
            await link.close()
        return reasons, answer

    reasons, answer = asyncio.run(run())
    assert reasons == [(4429, "24 pages are open already; close one")] * 16
    assert answer == "error"


def test_one_address_of_a_network_has_some_pages_and_the_others_have_theirs(guarded):
    async def opened(links, local, **more):
        link = await guarded.connect(path="/live?token=secret", local=local, **more)
        links.append(link)
        try:
            return unpack(await link.recv())[0]["kind"]
        except websockets.ConnectionClosed as end:
            return end.rcvd.reason

    async def run():
        links = []
        first = [await opened(links, "127.0.0.1") for _ in range(9)]
        claimed = await opened(links, "127.0.0.1", **{"X-Forwarded-For": "10.0.0.9", "Forwarded": "for=10.0.0.9"})
        others = [await opened(links, f"127.0.0.{k}") for k, _ in itertools.product((2, 3), range(8))]
        full = await opened(links, "127.0.0.4")
        await links[0].close()
        again = await opened(links, "127.0.0.1")
        for link in links:
            await link.close()
        return first, claimed, others, full, again

    first, claimed, others, full, again = asyncio.run(run())
    assert first == ["hello"] * 8 + ["8 pages are open from this address already; close one"]
    assert claimed == first[-1]
    assert others == ["hello"] * 16
    assert full == "24 pages are open already; close one"
    assert again == "hello"


def test_work_of_one_address_comes_in_turn_with_that_of_others(guarded, monkeypatch):
    """Eight pages of one address ask for heavy work; the page of another waits for one of them at most."""
    done, begun, may_end = [], threading.Event(), threading.Event()

    def heavy(session, name, view=None):
        begun.set()
        assert may_end.wait(PATIENCE)
        done.append(name)
        return {"kind": "layer"}, {}

    monkeypatch.setattr(_server.Session, "choose_layer", heavy)

    async def run():
        links = [await guarded.connect(path="/live?token=secret", local="127.0.0.1") for _ in range(8)]
        links.append(await guarded.connect(path="/live?token=secret", local="127.0.0.2"))
        for link in links:
            await link.recv()
        for link in links[:8]:
            await link.send(json.dumps({"id": 1, "do": "layer", "layer": "hog"}))
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        await links[8].send(json.dumps({"id": 1, "do": "layer", "layer": "other"}))
        await links[8].send(json.dumps({"id": 2, "do": "export"}))
        await links[8].recv()  # of the second request: the first is waiting for its turn
        may_end.set()
        for link in links:
            await link.recv()
            await link.close()

    asyncio.run(run())
    assert done.count("hog") == 8
    assert done.index("other") <= 2


# -- clients that are slow, or only half there


@pytest.fixture(scope="module")
def impatient(lines):
    """A server that waits for a second, and pings its pages twice a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_connections, "PATIENCE", 1.0)
        patch.setattr(_server, "warm", lambda: None)
        running = Running(Access("127.0.0.1"), ws_ping_interval=0.5, ws_ping_timeout=0.5)
        running.recovers()
        yield running
        running.stop()


def test_requests_that_do_not_come_whole_are_ended(impatient):
    begun = [
        b"",
        b"GET / HTTP/1.1\r\nHo",
        b"GET / HTTP/1.1\r\n" + impatient.host,
        b"POST / HTTP/1.1\r\n" + impatient.host + b"Content-Length: 100\r\n\r\nx",
        b"POST / HTTP/1.1\r\n" + impatient.host + b"Transfer-Encoding: chunked\r\n\r\n5\r\nx",
        b"GET / HTTP/1.1\r\n" + impatient.host + b"\r\n",  # whole, and then idle
        impatient.upgrade,
    ]
    links = [impatient.raw(part) for part in begun]
    for link in links:
        with link:
            assert not everything(link).endswith(b"TIMED OUT")
    assert impatient.recovers()


@pytest.mark.parametrize("body", [False, True], ids=["header", "body"])
def test_a_byte_now_and_then_does_not_keep_a_request_open(impatient, body):
    sized = b"POST / HTTP/1.1\r\n" + impatient.host + b"Content-Length: 1000\r\n\r\n"
    with impatient.raw(sized if body else b"GET /") as link:
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < PATIENCE:
                link.sendall(b"x")
                time.sleep(0.1)
        assert time.monotonic() - began < PATIENCE
    assert impatient.recovers()


@pytest.mark.trials
def test_a_page_that_does_not_read_is_ended_and_its_place_is_free(impatient):
    """It asks for long answers and reads none: what waits for it is bounded, and closing does not wait for it."""
    long_request = frame(1, b'{"do": "' + b"x" * 50000 + b'"}')
    with impatient.raw(impatient.upgrade + b"\r\n", patience=0.5, buffer=4096) as link:
        link.recv(1)
        with contextlib.suppress(TimeoutError, ConnectionError):
            for _ in range(200):
                link.sendall(long_request)
        waiting = [one.transport.get_write_buffer_size() for one in impatient.server.server_state.connections]
        assert max(waiting, default=0) < 5e6
        until = time.monotonic() + PATIENCE
        while impatient.page_server.clients.pages:
            assert time.monotonic() < until
            time.sleep(0.1)
    assert impatient.recovers()


@pytest.mark.trials
def test_pings_of_a_client_that_does_not_read_pile_up_no_answers(server):
    with server.raw(server.upgrade + b"\r\n", buffer=4096) as link:
        link.recv(1)
        (page,) = (one for one in server.server.server_state.connections if hasattr(one, "handle_ping"))
        link.sendall(frame(9, b"x" * 125) * 100000)
        for _ in range(10):
            time.sleep(0.1)
            assert page.transport.get_write_buffer_size() < 1e6


def test_a_page_that_sends_a_byte_now_and_then_is_ended(impatient):
    """Half a frame: a client that is within one cannot answer a ping."""
    with impatient.raw(impatient.upgrade + b"\r\n") as link:
        link.recv(1)
        link.sendall(frame(1, b"{}")[:-1])
        everything(link)
    assert impatient.recovers()


# -- too many connections


@pytest.mark.trials
def test_a_page_that_is_quiet_stays(impatient):
    async def script(page):
        await asyncio.sleep(3)
        return (await page.ask(do="export"))[0]["kind"]

    assert visit(impatient, script) == "error"


@pytest.fixture
def few(monkeypatch):
    """At most 20 connections, 10 of one client."""
    monkeypatch.setattr(_connections, "MOST_CONNECTIONS", 20)


def test_half_open_requests_give_way_to_whole_ones_and_pages_stay(server, few):
    async def run():
        async with server.connect() as link:
            page = Page(link)
            await page.hello()
            half = [server.raw(b"GET / HTTP/1.1\r\n") for _ in range(60)]
            assert await asyncio.to_thread(server.is_well)
            assert len(server.server.server_state.connections) <= 10
            answer = (await page.ask(do="export"))[0]["kind"]
            for one in half:
                one.close()
            return answer

    assert asyncio.run(run()) == "error"


def test_refused_websockets_that_are_not_closed_give_way(guarded, few):
    half = [guarded.raw(guarded.upgrade + b"\r\n") for _ in range(60)]  # without the token; the close is not answered
    assert guarded.is_well()
    for one in half:
        one.close()


def test_requests_without_end_on_one_connection_are_answered_in_turn(server):
    request = b"GET /style.css HTTP/1.1\r\n" + server.host + b"\r\n"
    with server.raw(request * 500, buffer=4096):
        assert server.is_well()
    answer = server.said(request * 50 + b"GET /none HTTP/1.1\r\n" + server.host + CLOSE)
    assert answer.count(b"HTTP/1.1 200 ") == 50
    assert status(answer[answer.rindex(b"HTTP/1.1") :]) == 404


def test_the_same_line_is_written_a_few_times_only(caplog):
    logger = logging.getLogger("of this test")
    logger.addFilter(Sparing())
    for number in range(1000):
        logger.warning("the client %d is bad", number)
        logger.warning("something failed\nof the client %d", number)
    assert len(caplog.records) == 2 * TIMES
    assert "left out" in caplog.records[-1].getMessage()
    logger.warning("another line")
    assert caplog.messages[-1] == "another line"


@pytest.mark.trials
def test_two_hundred_half_open_requests_at_128_files_leave_the_page_and_a_short_log(tmp_path):
    arguments = ["condensation", "play", "--no-browser", "--port", "0", "--host", "0.0.0.0", "--token", "secret"]
    code = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128)); "
    code += f"from condensation.cli import main; sys.argv = {arguments}; main()"
    log = tmp_path / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    links = []
    try:
        port = int(process.stdout.readline().split(":")[2].split("/")[0])
        address = f"http://127.0.0.1:{port}"
        cookie = {"Cookie": f"condensation_token_{port}=secret"}
        for round_ in range(3):
            for _ in range(200):
                links.append(_half_open(port))
            with urllib.request.urlopen(urllib.request.Request(address, headers=cookie), timeout=60) as answer:
                assert answer.status == 200, round_
        assert log.stat().st_size < 8000
    finally:
        for link in links:
            link.close()
        process.terminate()
        process.wait(30)
        process.stdout.close()


def _half_open(port):
    import socket

    link = socket.create_connection(("127.0.0.1", port), timeout=60)
    link.sendall(b"GET / HTTP/1.1\r\n")
    return link
