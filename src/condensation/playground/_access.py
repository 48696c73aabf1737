"""Who may use the server: pages of this machine, and pages of other machines that have the token.

- On a loopback address, the ``Host`` of every request must be a name of this machine. So a website cannot reach the
  server through a name of its own (DNS rebinding).
- On any other address, every request needs the token: once in the page's address, then in a cookie.
- Only a page of this server may open a websocket: its ``Origin`` must be the ``Host``.
- No page of another site may show this one in a frame, unless the owner names that site.
"""

import ipaddress
import re
import secrets
from collections.abc import Mapping, Sequence
from urllib.parse import SplitResult, urlsplit

from ..errors import InputError

COOKIE = "condensation_token"
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::([0-9]{1,5}))?", re.ASCII | re.IGNORECASE)
_ORIGIN = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)


class Access:
    """The rules of one server, and its token; ``embed_from`` names the sites whose pages may show it in a frame."""

    def __init__(self, host: str, token: str | None = None, embed_from: Sequence[str] = ()) -> None:
        for origin in embed_from:
            if not _ORIGIN.fullmatch(origin):
                raise InputError(f"a site to embed from is written like https://example.org:8000, not {origin!r}")
        self.ancestors = " ".join(embed_from) or "'none'"
        self.loopback = is_loopback(host)
        self.token = token or (None if self.loopback else secrets.token_urlsafe(24))

    def knows_host(self, headers: Mapping[str, str]) -> bool:
        """Whether the request names this machine."""
        return not self.loopback or is_loopback(_host_and_port(headers)[0])

    def cookie(self, headers: Mapping[str, str]) -> str:
        """The name of the cookie. It has the port in it, because browsers send cookies to every port of a host."""
        return f"{COOKIE}_{_host_and_port(headers)[1]}"

    def knows_token(self, query: Mapping[str, str], cookies: Mapping[str, str], headers: Mapping[str, str]) -> bool:
        """Whether the request has the token, if one is needed."""
        if self.token is None:
            return True
        candidates = [query.get("token", ""), cookies.get(self.cookie(headers), "")]
        return any(secrets.compare_digest(text.encode(), self.token.encode()) for text in candidates)

    def is_own_page(self, headers: Mapping[str, str]) -> bool:
        """Whether a page of this server opens the websocket."""
        origin = _split(headers.get("origin", ""))
        return origin.scheme in ("http", "https") and origin.netloc == headers.get("host", "")


def _host_and_port(headers: Mapping[str, str]) -> tuple[str, int]:
    """The host that a request names, and its port; no host if the text is none."""
    found = _HOST.fullmatch(headers.get("host", ""))
    return (found[1] or found[2], int(found[3] or 80)) if found else ("", 80)


def _split(address: str) -> SplitResult:
    """The parts of an address; empty parts if it is malformed."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def is_loopback(host: str) -> bool:
    """Whether an address is a loopback address of this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def client_of(address: tuple[str, int] | None) -> str:
    """The client at an address: an IPv4 address, or the network of an IPv6 address, all of which one client has.

    >>> client_of(("192.0.2.7", 5000)), client_of(("2001:db8:1:2:3::4", 5000)), client_of(("::ffff:192.0.2.7", 5000))
    ('192.0.2.7', '2001:db8:1:2::/64', '192.0.2.7')
    """
    try:
        host = ipaddress.ip_address(address[0].partition("%")[0] if address else "")
    except ValueError:
        return ""
    if isinstance(host, ipaddress.IPv4Address):
        return str(host)
    return str(host.ipv4_mapped or ipaddress.ip_network((host, 64), strict=False))
