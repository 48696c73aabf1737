"""The site's sources: programs that run and print what is shown, and an API reference that leaves nothing out."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS, PACKAGE = ROOT / "docs", ROOT / "src" / "condensation"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
PROGRAM = re.compile(r"(<!-- not run -->\n)?```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
PROGRAMS = {  # with PyTorch: tests/pytorch/test_pytorch_docs.py
    program: shown
    for page in PAGES
    for skipped, program, shown in PROGRAM.findall(page.read_text(encoding="utf-8"))
    if not skipped and "torch" not in program
}


def printed(program: str, folder: Path, given: str = "") -> str:
    script = folder.with_name(f"{folder.name}.py")
    script.write_text(program, encoding="utf-8")
    command = [sys.executable, str(script)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, cwd=folder, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


ONE_BY_ONE = """
import contextlib, io, json, linecache, os, sys
printed = []
for program in json.load(sys.stdin):
    os.mkdir(str(len(printed)))
    os.chdir(str(len(printed)))
    output, name = io.StringIO(), f"<program {len(printed)}>"
    linecache.cache[name] = len(program), None, program.splitlines(keepends=True), name  # as a notebook does
    with contextlib.redirect_stdout(output):
        exec(compile(program, name, "exec"), {"__name__": "__main__"})
    os.chdir("..")
    printed.append(output.getvalue())
print(json.dumps(printed))
"""


@pytest.mark.trials
def test_the_programs_print_what_is_shown(tmp_path):
    """Each with names of its own, all in one process: it takes longer to import JAX than to run them."""
    shown = {program: text for program, text in PROGRAMS.items() if text}
    assert len(shown) > 5
    found = json.loads(printed(ONE_BY_ONE, tmp_path, json.dumps([*shown])))
    assert dict(zip(shown, found, strict=True)) == shown


@pytest.mark.trials
@pytest.mark.parametrize("program", [program for program, shown in PROGRAMS.items() if not shown])
def test_a_program_runs(program, tmp_path):
    assert printed(program, tmp_path) or [*tmp_path.iterdir()], "it prints nothing and writes nothing"


def test_the_first_experiment_has_ten_lines_and_is_the_same_everywhere():
    first = [PROGRAM.findall(page.read_text(encoding="utf-8"))[0] for page in (PAGES[0], DOCS / "index.md")]
    first.append(PROGRAM.findall((DOCS / "package.md").read_text(encoding="utf-8"))[0])
    assert len(set(first)) == 1
    assert len([line for line in first[0][1].splitlines() if line.strip()]) <= 10


def test_the_readme_is_short_and_the_long_description_has_no_relative_links():
    assert len(PAGES[0].read_text(encoding="utf-8").splitlines()) <= 150
    assert re.findall(r"\]\((?!https:)", (DOCS / "package.md").read_text(encoding="utf-8")) == []


def public_names() -> set[tuple[str, str, Path]]:
    """Room, name, and the file that defines it, of every name in a stub, and of PyTorch's room, which has none."""
    found = set()
    for path in (*PACKAGE.rglob("__init__.pyi"), PACKAGE / "pytorch" / "__init__.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level and node.module:
                module = path.parents[node.level - 1].joinpath(*node.module.split("."))
                room = ".".join(path.parent.relative_to(PACKAGE.parent).parts)
                found |= {(room, alias.name, module) for alias in node.names if alias.name == alias.asname}
    return found


NAMES = public_names()
REFERENCE = [
    name
    for page in sorted((DOCS / "api").glob("*.md"))
    for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.M)
]


def documented_as(room: str, name: str, module: Path) -> str:
    """Where a name is documented: in its room; one that its room has from another room, in that one."""
    home = ".".join(module.relative_to(PACKAGE.parent).parts)
    private = module.name.startswith("_")
    return f"{room}.{name}" if private else f"{home}.{name}"


def test_the_reference_has_every_public_name_once():
    assert len(NAMES) > 200
    assert sorted({documented_as(*name) for name in NAMES} - {*REFERENCE}) == []
    assert len(REFERENCE) == len({*REFERENCE})


def docstrings(module: Path, name: str) -> dict[str, str | None]:
    """The docstrings of what a module defines under a name: of a value, a function, or a class with its methods."""
    body = ast.parse(module.with_suffix(".py").read_text(encoding="utf-8")).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id == name:
                follows = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                return {name: str(after.value.value) if follows else None}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name and not is_overload(node):
            inner = [each for each in node.body if isinstance(node, ast.ClassDef) and is_public(each)]
            return {name: ast.get_docstring(node)} | {f"{name}.{each.name}": ast.get_docstring(each) for each in inner}
    raise LookupError(f"{module} defines no {name}")


def is_overload(node: ast.AST) -> bool:
    return any(ast.unparse(each).endswith("overload") for each in getattr(node, "decorator_list", []))


def is_public(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not is_overload(node)


def test_every_public_name_and_method_has_a_docstring():
    defined = {(name, module) for _, name, module in NAMES if module.with_suffix(".py").exists()}
    found = {where: text for name, module in defined for where, text in docstrings(module, name).items()}
    assert len(found) > 400
    assert sorted(where for where, text in found.items() if not text) == []
