"""The tutorials: notebooks that run, print what they store, and say what is true."""

import ast
import json
import re
import runpy

import nbformat
import pytest
from notebooks import TUTORIALS, execute
from test_docs import NAMES, ROOT

NOTEBOOKS = {path.stem: path for path in sorted(TUTORIALS.glob("*.ipynb"))}
PUBLIC = {(room, name) for room, name, _ in NAMES}
PAGE = runpy.run_path(str(ROOT / "docs" / "_tutorials.py"))
WIDE = 90  # characters of code that fit on a page
each_notebook = pytest.mark.parametrize("name", NOTEBOOKS)

CLOSE = {"your-pytorch-model": 0.25}  # single precision: its numbers differ from processor to processor
STATEMENTS = {  # what the prose says, of the variables that a notebook leaves
    "see-and-predict": (
        "(history.k_eff[:, 0] > 35).all() and (history.k_eff[:, 50] < 1.1).all()",
        "min(cosine_to_line(experiment, 20)) > 0.96",
        "all(np.array(cosine_to_line(by_flow, 20)) < cosine_to_line(experiment, 20))",
        "sum(at_50 < 0.95) == 5 and [*(at_50 < 0.95)] == [count > 0 for count in changed]",
        "sum(cosine >= 0.95 for cosine in cosines) == 8",
    ),
    "count-honestly": (
        "c.find_lines(plane, threshold=0.95).condensed and not c.find_lines(plane).condensed",
        "c.find_lines(space, threshold=0.80).condensed and not c.find_lines(space).condensed",
        "row.k_eff < 1.1 and row.centred_k_eff > 0.9 * row.units",
        "sum(lines.condensed for lines in trained) == 8 and not any(lines.condensed for lines in untrained)",
        "{2, 7} < {lines.count for lines in trained} <= {*range(2, 8)}",
        "[c.find_lines(two_lines(degrees)).count for degrees in (15, 20)] == [1, 2]",
    ),
    "your-pytorch-model": (
        "abs(accuracy(models['ordinary']) - accuracy(models['small'])) < 0.02",
        "watched['ordinary'].history('0.weight', 'k_eff')[1].min() > 95",
        "20 < watched['small'].history('0.weight', 'k_eff')[1][-1] < 40",
        "50 < reduce_model(models['ordinary'], (x_train, y_train)).sizes['0'][1] < 70",
        "(half := reduce_model(models['small'], (x_train, y_train))).sizes['0'][1] < 35",
        "equal_predictions(models['small'], half.model) > 0.995",
        "small.sizes['0'][1] < 15 and equal_predictions(model, small.model) > 0.96",
    ),
    "a-phase-diagram": (
        "(k_eff[:, -1] > 40).all()",
        "(k_eff[:3, :3] < 1.1).all()",
        "2.5 < k_eff[-1, 0] < 4.5 and gone[-1] > 0.3",
        "(len(table), len(more), opened.complete) == (135, 180, True)",
        "abs(lines.k_eff - table.array('dense1.k_eff')[4, 0, 0]) < 1e-9",
        "same",
        "longer.array('dense1.k_eff')[0].min() > 20 and longer.array('dense1.k_eff')[1].max() < 2",
    ),
    "a-claim": (
        "sum(holds) == 1 and holds[1] and judge(holds) == 'not reproduced'",
        "not any(control.holds(exactly(2)))",
        "np.median(shares['gradient flow']) == 0 and np.median(shares['Adam']) >= 0.5",
        "judge(measured.holds(claim.rule)) == 'reproduced'",
    ),
    "your-own-figure": (
        "[each['verdict'] for each in findings] == ['reproduced', 'not reproduced', 'reproduced']",
        "[each['untrained']['verdict'] for each in findings] == ['not reproduced', 'not decided', 'reproduced']",
        "findings[0]['holds'].count(True) == 8 and figure.ratio_of_times.median > 0.95",
    ),
}


def read(name: str) -> dict:
    return json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))


def printed(notebook) -> list[str]:
    """What each code cell prints."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [
        "".join("".join(each["text"]) for each in cell["outputs"] if each.get("name") == "stdout") for cell in cells
    ]


def assert_alike(found: str, stored: str, tolerance: float) -> None:
    """The same text, up to numbers that differ by a share."""
    number = r"\d+(?:\.\d+)?"
    assert re.sub(number, "#", found).split() == re.sub(number, "#", stored).split()
    numbers = [[float(each) for each in re.findall(number, text)] for text in (found, stored)]
    assert numbers[0] == pytest.approx(numbers[1], rel=tolerance, abs=0)


def test_all_six_are_there_and_small():
    assert {*STATEMENTS} == {*NOTEBOOKS}
    assert sum(path.stat().st_size for path in NOTEBOOKS.values()) < 2_000_000
    listed = re.findall(r"tutorials/([\w-]+)\.md$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    assert {*listed} == {*NOTEBOOKS, "index"}


@each_notebook
def test_a_notebook_stores_one_clean_run(name):
    cells = [cell for cell in read(name)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert [output["text"] for output in outputs if output.get("name") == "stderr"] == []
    assert not re.search(r"/(tmp|home|root|work|usr)/", json.dumps(outputs))


@each_notebook
def test_a_notebook_teaches_with_an_exercise_and_its_answer(name):
    cells = read(name)["cells"]
    prose = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    assert prose[0].startswith("# ")
    assert sum("## Exercise" in text for text in prose) == 1
    answers = [cell for cell in cells if cell["metadata"].get("jupyter", {}).get("source_hidden")]
    assert len(answers) == 1
    assert cells.index(answers[0]) > next(k for k, cell in enumerate(cells) if "## Exercise" in "".join(cell["source"]))


def code_of(name: str) -> list[str]:
    """The lines of all code cells."""
    cells = [cell for cell in read(name)["cells"] if cell["cell_type"] == "code"]
    return [line for cell in cells for line in "".join(cell["source"]).splitlines()]


@each_notebook
def test_a_page_shows_code_and_outputs_without_scrolling(name):
    shown = [*code_of(name), *(line for text in printed(read(name)) for line in text.splitlines())]
    assert [line for line in shown if len(line) > WIDE] == []


@each_notebook
def test_a_notebook_uses_public_names_only(name):
    code = "\n".join(line for line in code_of(name) if not line.startswith("%"))
    used = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("condensation"):
            used |= {(node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_")
            if isinstance(node.value, ast.Name) and node.value.id == "c":
                used.add(("condensation", node.attr))
    assert used
    assert used - PUBLIC == set()


@each_notebook
def test_the_page_of_a_notebook_has_its_text_pictures_and_download(name):
    notebook, made = read(name), PAGE["page_of"](NOTEBOOKS[name])
    page = made.pop(f"{name}.md")
    assert f'href="{name}.ipynb"' in page
    assert ".ipynb)" not in PAGE["on_page_markdown"](page, None, None, None)  # other tutorials are linked as pages
    assert all(content.startswith(b"\x89PNG") and f"]({file})" in page for file, content in made.items())
    assert len(made) == json.dumps(notebook).count('"image/png"')
    assert all(line.strip() in page for text in printed(notebook) for line in text.splitlines())
    assert page.count('??? note "An answer"') == 1


def test_the_page_refuses_a_notebook_that_was_not_run(tmp_path):
    cell = {"cell_type": "code", "source": ["1 + 1"], "execution_count": None, "outputs": [], "metadata": {}}
    path = tmp_path / "new.ipynb"
    path.write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    with pytest.raises(ValueError, match="make tutorials"):
        PAGE["page_of"](path)


def test_a_fence_holds_whatever_is_in_it():
    assert PAGE["fenced"]("text", "````\na\n````").startswith("`````text\n")


@pytest.mark.trials
@each_notebook
def test_a_notebook_prints_what_it_stores_and_says_what_is_true(name, tmp_path):
    notebook = nbformat.read(NOTEBOOKS[name], as_version=4)
    stored = printed(notebook)
    checks = "\n".join(f"assert {statement}, {statement!r}" for statement in STATEMENTS[name])
    notebook.cells.append(nbformat.v4.new_code_cell(checks))
    *found, _ = printed(execute(notebook, tmp_path))
    for each, before in zip(found, stored, strict=True):
        assert_alike(each, before, CLOSE.get(name, 1e-9))
