"""A page of the report, read back."""

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "img", "input", "link", "hr"}


class Page(HTMLParser):
    """A page read back: it fails where tags do not balance."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, str | None]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.headings: list[int] = []
        self.texts: dict[str, str] = {}
        self.seen: set[str] = set()
        self.hidden: set[str | None] = set()
        self.scripts: list[str | None] = []
        self.policy = ""
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.seen.add(tag)
        if "id" in found:
            self.ids.append(str(found["id"]))
        self.links += [str(found[name]) for name in ("href", "src") if name in found]
        if "hidden" in found:
            self.hidden.add(found.get("id"))
        if tag == "script":
            self.scripts.append(found.get("src"))
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(found["content"])
        if tag == "img":
            self.images.append(found)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append((tag, found.get("id")))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open[-1][0] == tag, f"</{tag}> closes {self.open[-1]}"
        self.open.pop()

    def handle_data(self, data):
        for _, name in self.open:
            if name:
                self.texts[name] = self.texts.get(name, "") + data
