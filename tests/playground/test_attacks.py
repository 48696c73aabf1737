"""Attacks on the page's server, each spelled out. After every one the server is up and answers a good client.

A real server on a loopback port; attackers talk raw bytes, or the protocol of websockets.
"""

import re

import pytest

pytest.importorskip("websockets")

from serving import CLOSE, UPGRADE, closed_with, status

from condensation.playground._access import Access

# -- DNS rebinding: a website's own name points to this machine, and its script asks this server


FOREIGN = [
    *("evil.example", "evil.example:8471", "127.0.0.1.evil.example", "localhost.evil.example", "localhostevil"),
    *("2130706433", "127.1", "0x7f.0.0.1", "0.0.0.0", "192.168.0.1", "[::2]", "[::ffff:10.0.0.1]", "::1", "["),
    *(
        "evil@localhost",
        "localhost@evil.example",
        "localhost/evil",
        "localhost#evil",
        "localhost:x",
        "localhost:123456",
    ),
    *("localhost, evil.example", "localhost evil", "löcalhost", "localhost..", ""),
]


@pytest.mark.parametrize("host", FOREIGN)
def test_dns_rebinding_a_foreign_host_gets_nothing(server, host):
    line = b"Host: " + host.encode() + b"\r\n"
    answer = server.said(b"GET / HTTP/1.1\r\n" + line + CLOSE)
    assert status(answer) in (400, 421)
    assert b"<html" not in answer
    refused = server.said(
        b"GET /live HTTP/1.1\r\n" + line + b"Origin: http://" + host.encode() + b"\r\n" + UPGRADE + b"\r\n"
    )
    assert status(refused) in (400, 403)


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:8471", "localhost.", "page.localhost", "127.0.0.1", "127.8.9.1:1", "[::1]", "[::1]:80"],
)
def test_names_of_this_machine_get_the_page(server, host):
    assert status(server.said(b"GET / HTTP/1.1\r\nHost: " + host.encode() + b"\r\n" + CLOSE)) == 200


def test_two_hosts_or_none_are_refused(server):
    assert status(server.said(b"GET / HTTP/1.1\r\n" + server.host + b"Host: evil.example\r\n" + CLOSE)) == 400
    assert status(server.said(b"GET / HTTP/1.1\r\n" + CLOSE)) == 400
    assert status(server.said(b"GET http://evil.example/ HTTP/1.1\r\n" + server.host + CLOSE)) == 404


# -- a website's script opens a websocket to this server, which no browser forbids


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "file://",
        "http://127.0.0.1:1",
        "http://localhost",
        "ws://127.0.0.1",
        "http://[",
        "x" * 4000,
    ],
)
def test_a_cross_site_websocket_is_closed(server, origin):
    assert closed_with(server, origin=origin)[0] == 4403


def test_a_websocket_without_an_origin_is_closed(server):
    with server.raw(b"GET /live HTTP/1.1\r\n" + server.host + UPGRADE + b"\r\n") as link:
        said = b""
        while b"own page" not in said:
            said += link.recv(65536)
    assert b"hello" not in said


def test_a_websocket_elsewhere_is_refused(server):
    for path in (b"/", b"/x", b"/live/", b"/live%00", b"/../live", b"//live"):
        asked = server.upgrade.replace(b"GET /live ", b"GET " + path + b" ") + b"\r\n"
        assert status(server.said(asked)) in (403, 404, 400)


# -- the token


def test_a_wrong_a_missing_or_an_old_token_gets_nothing(guarded):
    name = f"condensation_token_{guarded.port}"
    old = Access("0.0.0.0").token  # of a server that was stopped since
    wrong = [
        "",
        "?token=",
        "?token=Secret",
        "?token=secre",
        "?token=secrets",
        "?token=%00secret",
        "?token=%ff",
        f"?token={old}",
    ]
    for query in (*wrong, "?token=" + "x" * 5000, "?Token=secret", "?token=wrong&token=secre", "?token[]=secret"):
        assert guarded.get(f"/{query}")[0] == 401
        assert closed_with(guarded, path=f"/live{query}")[0] == 4401
    for cookie in (
        f"{name}={old}",
        f"{name}=",
        "condensation_token=secret",
        f"{name}1=secret",
        f'{name}="secre"',
        "=" * 99,
    ):
        assert guarded.get("/main.js", Cookie=cookie)[0] == 401
        assert closed_with(guarded, Cookie=cookie)[0] == 4401
    assert guarded.get("/", Cookie=f"{name}=secret")[0] == 200


def test_a_foreign_origin_with_the_right_token_is_closed(guarded):
    assert closed_with(guarded, origin="http://evil.example", path="/live?token=secret")[0] == 4403


def test_a_host_that_is_none_breaks_no_cookie(guarded, log):

    for host in (b"a;b:c", b"[::1]", b'"', b"x:99999999", b"["):
        answer = guarded.said(b"GET /?token=secret HTTP/1.1\r\nHost: " + host + b"\r\n" + CLOSE)
        assert status(answer) == 303
        assert b"condensation_token_80=secret; HttpOnly" in answer
    assert not log


# -- files outside the page


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/../_server.py",
            "/%2e%2e/_server.py",
            "/..%2f_server.py",
            "/%2e%2e%2f%2e%2e%2f_server.py",
            "/views/../../_server.py",
        ),
        *(
            "/..%5c_server.py",
            "/..\\_server.py",
            "/%252e%252e/_server.py",
            "/%c0%ae%c0%ae/_server.py",
            "/....//_server.py",
        ),
        *("//etc/passwd", "/%2fetc/passwd", "/etc/passwd", "/C:/windows", "/file:///etc/passwd", "/~"),
        *("/%00", "/style.css%00.js", "/..%00/_server.py", "/views", "/views/", "/presets.toml", "/__init__.py", "*"),
        *(
            "/" + "a" * 5000,
            "/" + "a/" * 5000,
            "/" + "%2e%2e/" * 1000 + "etc/passwd",
            "/%ff%fe",
            "/%e2%80%ae",
            "/%0d%0aX:y",
        ),
    ],
)
def test_no_path_leads_out_of_the_page(server, path):
    answer = server.said(b"GET " + path.encode() + b" HTTP/1.1\r\n" + server.host + CLOSE)
    assert status(answer) == 404
    assert b"import" not in answer
    assert b"root:" not in answer


# -- HTTP that is none, and requests smuggled in others


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "PRI", "get", "X" * 999]
)
def test_other_methods_are_refused(server, method):
    assert status(server.said(method.encode() + b" / HTTP/1.1\r\n" + server.host + CLOSE)) == 405


@pytest.mark.parametrize(
    "header",
    [
        *(
            b"Content-Length: 1\r\nContent-Length: 2",
            b"Content-Length: -1",
            b"Content-Length : 5",
            b"Content-Length: 5x",
        ),
        *(
            b"Transfer-Encoding: xchunked",
            b"Transfer-Encoding: chunked, chunked",
            b"X\0: 1",
            b"X: \0",
            b": 1",
            b"no colon",
        ),
    ],
)
def test_malformed_headers_are_refused(server, header):
    assert status(server.said(b"GET / HTTP/1.1\r\n" + server.host + header + b"\r\n" + CLOSE)) == 400


@pytest.mark.parametrize(
    "junk", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"\0" * 2000, b"GET\r\n\r\n", b"\xff\xfe\r\n\r\n"]
)
def test_what_is_no_http_is_refused(server, junk):
    assert status(server.said(junk + b"\r\n\r\n")) in (400, None)


def test_a_request_in_the_body_of_another_is_no_request(server):
    inner = b"GET /style.css HTTP/1.1\r\n" + server.host + b"\r\n"
    sized = b"Content-Length: " + str(len(inner)).encode() + b"\r\n"
    chunked = b"Transfer-Encoding: chunked\r\n"
    for header, body in (
        (sized, inner),
        (chunked, f"{len(inner):x}\r\n".encode() + inner + b"\r\n0\r\n\r\n"),
        (b"Content-Length: 3\r\n" + chunked, f"{len(inner):x}\r\n".encode() + inner + b"\r\n0\r\n\r\n"),
    ):
        answer = server.said(
            b"GET / HTTP/1.1\r\n" + server.host + header + b"\r\n" + body, b"HEAD /x HTTP/1.1\r\n" + server.host + CLOSE
        )
        assert [int(code) for code in re.findall(rb"HTTP/1\.1 (\d+) ", answer)] == [200, 404]


def test_huge_addresses_and_headers_end_the_connection(server):
    for begun in (b"GET /" + b"x" * 10**6, b"GET / HTTP/1.1\r\n" + server.host + b"X: " + b"y" * 10**6):
        assert status(server.said(begun)) in (400, None)
    many = b"".join(b"X%d: y\r\n" % k for k in range(10**5))
    assert status(server.said(b"GET / HTTP/1.1\r\n" + server.host + many + b"\r\n")) in (400, None)


def test_a_websocket_with_too_many_headers_is_refused_and_does_not_hang(server):
    for more in (b"".join(b"X%d: y\r\n" % k for k in range(300)), b"X: " + b"y" * 12000 + b"\r\n"):
        assert status(server.said(server.upgrade + more + b"\r\n")) == 431
