"""Attacks through a websocket that is open: frames, requests and formulas. The server stays up, as it does in all."""

import pytest

pytest.importorskip("websockets")

from serving import frame, visit

from condensation.playground._messages import unpack
from condensation.playground._server import MOST_CHARACTERS

# -- frames


def ended_with(answer):
    """Code and reason of the close frame at the end of what a server said."""
    for start in range(len(answer) - 2, -1, -1):
        if answer[start] == 0x88 and answer[start + 1] == len(answer) - start - 2:
            return int.from_bytes(answer[start + 2 : start + 4], "big"), answer[start + 4 :].decode()
    return 0, ""


@pytest.mark.parametrize(
    "frames",
    [
        [frame(1, b"\xff\xfe")],
        [frame(1, b'{"do": "\xc3"}')],
        [frame(1, b"\xc3", first=0), frame(0, b"(")],
        [frame(1, b"{", first=0), frame(0, b"\xed\xa0\x80", first=0)],
        [frame(1, b"\xff"), frame(1, b"\xff"), frame(2, b"x")],
    ],
    ids=["bytes", "half a letter", "in two frames", "a surrogate", "several"],
)
def test_text_that_is_not_utf8_closes_the_socket_with_a_sentence(server, log, frames):
    assert ended_with(server.frames(*frames)) == (1007, "a request is text in UTF-8")
    assert not log


def test_a_letter_may_be_in_two_frames(server):
    letter = "é".encode()
    first, second = frame(1, b'{"id": 1, "do": "' + letter[:1], first=0), frame(0, letter[1:] + b'"}')
    with server.raw(server.upgrade + b"\r\n") as link:
        link.recv(1)
        link.sendall(first)
        link.sendall(second)
        said = b""
        while b"\\u00e9" not in said:
            said += link.recv(65536)


def test_bytes_close_the_socket_with_a_sentence(server, log):
    assert ended_with(server.frames(frame(2, b"x"))) == (1003, "a request is text, not bytes")
    assert ended_with(server.frames(frame(2, b"x", first=0), frame(0, b"y"))) == (1003, "a request is text, not bytes")
    assert not log


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"\x81\xff" + b"\xff" * 8 + bytes(4), 1009),  # 2**64 bytes announced
        (b"\x81\xff" + (MOST_CHARACTERS + 1).to_bytes(8, "big") + bytes(4), 1009),
        (b"".join([frame(1, b"x" * 60000, first=0), frame(0, b"x" * 60000)]), 1009),  # in parts
        (frame(1, b"x" * 100, first=0xC0), 1002),  # compressed, such as a bomb: nothing is ever unpacked
        (frame(5, b""), 1002),
        (frame(0, b"x"), 1002),
        (b"\x81\x02{}", 1002),  # not masked
        (frame(8, b"\x00"), 1002),
        (frame(9, b"x" * 126), 1002),
        (frame(9, b"x", first=0), 1002),
    ],
    ids=[
        "2**64",
        "too long",
        "in parts",
        "compressed",
        "opcode",
        "no beginning",
        "unmasked",
        "close",
        "ping",
        "half a ping",
    ],
)
def test_bad_frames_close_the_socket(server, log, sent, code):
    assert ended_with(server.frames(sent))[0] == code
    assert not log


def test_compression_is_not_offered(server):
    asked = server.upgrade + b"Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n\r\n"
    with server.raw(asked) as link:
        said = b""
        while b"hello" not in said:
            said += link.recv(65536)
    assert b"deflate" not in said


# -- requests


@pytest.mark.parametrize(
    "request_text",
    [
        *('{"do": "frame", "at": ' + "9" * 4000 + "}", '{"do": "frame", "at": -1}', '{"do": "frame", "steps": 1e999}'),
        *(
            '{"do": "frame", "steps": NaN}',
            '{"id": ' + "9" * 4000 + "}",
            '{"id": ' + "9" * 60000 + "}",
            '{"do": {"a": []}}',
        ),
        *('{"do": "open", "settings": {"formula": null}}', '{"do": "open", "settings": []}', '{"problem": {"a": 1}}'),
        *(
            '{"do": "open", "settings": {"data": "points", "points": "' + "1,1,1;" * 10000 + '"}}',
            '{"do": "run", "name": ["../.."]}',
        ),
        *(
            '{"do": "run", "name": "../../etc"}',
            '{"do": "sweep", "name": "/etc/passwd"}',
            '{"do": "layer", "layer": {}}',
        ),
        *(
            '{"do": "open", "settings": {"layers": "' + "tanh," * 10000 + '"}}',
            '{"a":' * 10000,
            '"\\ud800"',
            '{"do": "\\ud800"}',
        ),
    ],
)
def test_hostile_requests_are_answered(server, request_text):
    async def script(page):
        await page.link.send(request_text)
        return unpack(await page.link.recv())[0]["kind"]

    assert visit(server, script) == "error"


@pytest.mark.parametrize(
    "formula",
    [
        *(
            "(" * 49 + "x" + ")" * 49 + "+" * 400,
            "(" * 200 + "x" + ")" * 200,
            "-" * 499 + "x",
            "x" + "**x" * 160,
            "sin(" * 100 + "x",
        ),
        *(
            "x+" * 30000 + "x",
            "9" * 499,
            "1e" + "9" * 400,
            "9**9**9**9**9",
            "x**" * 20 + "x",
            "__import__('os').system('true')",
        ),
        *(
            "().__class__",
            "[x for x in x]",
            "lambda: x",
            "x if x else x",
            "x;x",
            "x\0",
            "\N{RIGHT-TO-LEFT OVERRIDE}x",
            "ｘ",
            "open(x)",
        ),
    ],
)
def test_hostile_formulas_are_refused_or_computed_and_never_run(server, formula):
    async def script(page):
        settings = {"formula": formula, "width": "2", "n": "4"}
        return (await page.ask(do="open", settings=settings))[0]

    answer = visit(server, script)
    assert answer["kind"] == "error"
    assert len(answer["sentence"]) < 1000
