"""``condensation play``."""

import socket
import sys
import threading
import webbrowser
from pathlib import Path

import tyro

from .._functions import look_in
from ..errors import InputError

PORT = 8471
SWITCH = 5e-4  # seconds a thread keeps the interpreter: ten pages then get 21 frames a second each, not 16


def play(
    folders: tyro.conf.Positional[tuple[Path, ...]] = (),
    /,
    port: int = PORT,
    host: str = "127.0.0.1",
    token: str | None = None,
    browser: bool = True,
    trust: bool = False,
) -> None:
    """Open the playground: watch neurons condense in a browser.

    Args:
        folders: your own runs and sweeps, or folders of them, which the page can open.
        port: the port of the server; 0 takes a free one.
        host: the address to listen on. Any address except a loopback address needs a token.
        token: the token; a random one if one is needed and none is given.
        browser: open the page in the browser.
        trust: import the functions that your runs and sweeps name, from the current folder too.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise InputError("the playground needs an extra: pip install 'condensation[play]'") from error
    from ..playground._access import Access
    from ..playground._library import Library
    from ..playground._server import Server, config_of

    if trust:
        look_in(Path())
    listening = listen(host, port)
    access = Access(host, token)
    server = Server(access, Library(folders, trust))
    address = f"http://{_named(host)}:{listening.getsockname()[1]}/" + (
        f"?token={access.token}" if access.token else ""
    )
    print(f"the playground is at {address} (Ctrl-C ends it)", flush=True)
    if browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    sys.setswitchinterval(SWITCH)
    uvicorn.Server(config_of(server)).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; connections wait until the server is ready."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"port {port} of {host} cannot be used: {reason}; --port 0 takes a free one") from error


def _named(host: str) -> str:
    """The host as an address of the page names it."""
    return f"[{host}]" if ":" in host else socket.gethostname() if host == "0.0.0.0" else host
