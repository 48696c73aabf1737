"""Who may use the server: pages of this machine, and pages of other machines that have the token.

- On a loopback address, the ``Host`` of every request must be a name of this machine. So a website cannot reach the
  server through a name of its own (DNS rebinding).
- On any other address, every request needs the token: once in the page's address, then in a cookie.
- Only a page of this server may open a websocket: its ``Origin`` must be the ``Host``.
"""

import ipaddress
import secrets
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

COOKIE = "condensation_token"


class Access:
    """The rules of one server, and its token."""

    def __init__(self, host: str, token: str | None = None) -> None:
        self.loopback = is_loopback(host)
        self.token = token or (None if self.loopback else secrets.token_urlsafe(24))

    def knows_host(self, headers: Mapping[str, str]) -> bool:
        """Whether the request names this machine."""
        return not self.loopback or is_loopback(_split(f"//{headers.get('host', '')}").hostname or "")

    def cookie(self, headers: Mapping[str, str]) -> str:
        """The name of the cookie. It has the port in it, because browsers send cookies to every port of a host."""
        host = headers.get("host", "")
        return f"{COOKIE}_{host.rpartition(':')[2] if ':' in host else 80}"

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
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
