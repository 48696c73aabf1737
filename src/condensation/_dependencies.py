"""What a module of this package depends on: the source files that it imports, read without running them.

Imports inside functions count; those for type checkers do not. A package's stub tells where its names come from.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent


def digest(modules: Iterable[str], root: Path = ROOT) -> str:
    """A digest of the sources of modules and of all that they import from their package, directly or not."""
    hashed = hashlib.sha256()
    for path in sorted({path for module in modules for path in dependencies(module, root)}):
        hashed.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return hashed.hexdigest()[:16]


def dependencies(module: str, root: Path = ROOT) -> set[Path]:
    """The source files that a module needs, its own among them; the root is the folder of the whole package."""
    known: set[Path] = set()
    waiting = [path for path in [_file(root, module.split(".")[1:])] if path is not None]
    if not waiting:
        raise ModuleNotFoundError(module)
    while waiting:
        path = waiting.pop()
        if path not in known:
            known.add(path)
            waiting += _imported(path, root)
    return known


@cache
def _imported(path: Path, root: Path) -> list[Path]:
    """The files that a file imports from its own package."""
    files = []
    for node in _imports(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            files += [_file(root, name[1:]) for name in names if name[0] == root.name]
        elif (base := _base(node, path, root)) is not None:
            for alias in node.names:
                files += _homes(root, base, alias.name)
    return [file for file in files if file is not None]


def _base(node: ast.ImportFrom, path: Path, root: Path) -> tuple[str, ...] | None:
    """The module that a from-import names, as steps from the root; None where it is of another package."""
    named = tuple(node.module.split(".")) if node.module else ()
    if not node.level:
        return named[1:] if named[:1] == (root.name,) else None
    package = path.relative_to(root).parts[:-1]
    return package[: len(package) - node.level + 1] + named


def _homes(root: Path, base: tuple[str, ...], name: str) -> list[Path | None]:
    """The files that ``from base import name`` needs: that module, or the package and where its stub finds the name."""
    if (module := _file(root, (*base, name))) is not None:
        return [module]
    file = _file(root, base)
    if file is None or file.name != "__init__.py":
        return [file]
    files: list[Path | None] = [file]
    stub = file.with_suffix(".pyi")
    listing = stub if stub.is_file() else file
    for node in _imports(ast.parse(listing.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.ImportFrom) and any(name in (alias.asname, alias.name) for alias in node.names):
            home = _base(node, listing, root)
            files += [] if home is None else _homes(root, home, name)
    return files


def _imports(body: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements of a body, at any depth, but for those that only type checkers read."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            yield from _imports(node.orelse)
        else:
            yield from _imports(ast.iter_child_nodes(node))


def _file(root: Path, parts: Iterable[str]) -> Path | None:
    """The file of a module, by its steps from the root."""
    path = root.joinpath(*parts)
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
