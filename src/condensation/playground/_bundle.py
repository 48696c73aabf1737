"""The files of the page in one HTML file that a browser opens from a disk, where it loads no modules.

Each module becomes a function that gives its exports, in the order in which they need each other. Only the forms of
``import`` and ``export`` that the page uses are known; any other one is refused.
"""

import base64
import hashlib
import re
from pathlib import Path
from posixpath import dirname, join, normpath

PAGE = Path(__file__).parent / "page"
MARK = '<meta name="generator" content="condensation play --export">'
_IMPORT = re.compile(r'^import\s+(?:\{([^}]*)\}|\*\s+as\s+(\w+))\s+from\s+"([^"]+)";$', re.MULTILINE)
_REEXPORT = re.compile(r'^export\s+\{([^}]*)\}(?:\s+from\s+"([^"]+)")?;$', re.MULTILINE)
_EXPORT = re.compile(r"^export\s+((?:async\s+)?function\*?|class|const)\s+(\w+)", re.MULTILINE)
_LEFT = re.compile(r"^\s*(?:import|export)\b(?!\s*:).*$|\bimport\s*\(|\bimport\.meta\b", re.MULTILINE)
_STYLE = '<link rel="stylesheet" href="style.css">'
_SCRIPT = '<script type="module" src="main.js"></script>'
_END = "</body>"


def bundle(modules: dict[str, str], entry: str) -> str:
    """One script in place of modules, which are given by their paths.

    >>> print(bundle({"a.js": 'import { b } from "./b.js";\\nb();', "b.js": "export const b = () => 1;"}, "a.js"))
    (() => {
    "use strict";
    const modules = {};
    modules["b.js"] = (() => {
    const b = () => 1;
    return { b };
    })();
    modules["a.js"] = (() => {
    const { b } = modules["b.js"];
    b();
    return {  };
    })();
    })();
    """
    made: dict[str, str] = {}

    def add(path: str, above: tuple[str, ...]) -> None:
        if path in above:
            raise ValueError(f"modules import each other: {' > '.join([*above, path])}")
        if path in made:
            return
        if path not in modules:
            raise ValueError(f"{above[-1] if above else 'the page'} imports {path}, which is no module of the page")
        text, needed = _function(path, modules[path])
        for other in needed:
            add(other, (*above, path))
        made[path] = text

    add(entry, ())
    return '(() => {\n"use strict";\nconst modules = {};\n' + "".join(made.values()) + "})();"


def _function(path: str, text: str) -> tuple[str, list[str]]:
    """A module as a function that gives its exports, and the modules that it needs."""
    needed, exports = [], []

    def at(link: str) -> str:
        needed.append(normpath(join(dirname(path), link)))
        return f'modules["{needed[-1]}"]'

    def imported(found: re.Match[str]) -> str:
        names = found[2] or f"{{ {', '.join(_renamed(*pair) for pair in _pairs(found[1]))} }}"
        return f"const {names} = {at(found[3])};"

    def listed(found: re.Match[str]) -> str:
        source = at(found[2]) + "." if found[2] else ""
        exports.extend(_renamed(outer, source + inner) for inner, outer in _pairs(found[1]))
        return ""

    def declared(found: re.Match[str]) -> str:
        exports.append(found[2])
        return f"{found[1]} {found[2]}"

    for pattern, replace in ((_IMPORT, imported), (_REEXPORT, listed), (_EXPORT, declared)):
        text = pattern.sub(replace, text)
    if left := _LEFT.search(_without_comments(text)):
        raise ValueError(f"{path} has a form of import or export that is not known: {left[0].strip()}")
    return f'modules["{path}"] = (() => {{\n{text.strip()}\nreturn {{ {", ".join(exports)} }};\n}})();\n', needed


def _pairs(names: str) -> list[tuple[str, str]]:
    """Names in braces as pairs: ``a as b`` gives a and b, ``a`` gives a twice."""
    parts = [name.split() for name in names.split(",") if name.strip()]
    return [(part[0], part[-1]) for part in parts]


def _renamed(name: str, value: str) -> str:
    """A part of an object, or of a pattern that takes one apart."""
    return name if name == value else f"{name}: {value}"


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def page(recording: str) -> str:
    """The page as one file, with a recording in it; it may load nothing from anywhere."""
    modules = {path.relative_to(PAGE).as_posix(): path.read_text(encoding="utf-8") for path in PAGE.rglob("*.js")}
    script, style = bundle(modules, "main.js"), (PAGE / "style.css").read_text(encoding="utf-8")
    for name, text, end in (("script", script, "</script"), ("style", style, "</style"), ("recording", recording, "<")):
        if end in text.lower():
            raise ValueError(f"the {name} of the page contains {end}, which would end it")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = f'{MARK}\n    <meta http-equiv="Content-Security-Policy" content="{policy}">\n    <style>\n{style}</style>'
    data = f'<script type="text/plain" id="recording">\n{recording}\n</script>\n<script>{script}</script>\n'
    whole = (PAGE / "index.html").read_text(encoding="utf-8")
    for old, new in ((_STYLE, head), (f"    {_SCRIPT}\n", ""), (_END, data + _END)):
        if whole.count(old) != 1:
            raise ValueError(f"index.html has {old.strip()} {whole.count(old)} times, not once")
        whole = whole.replace(old, new)
    return whole
