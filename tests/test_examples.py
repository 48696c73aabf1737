"""The experiments of examples/experiments: short, with public names only; they run, and find what they say."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "experiments"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def printed(file: Path, folder: Path) -> str:
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, cwd=folder, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(text: str) -> list[float]:
    """All numbers of a text."""
    return [float(number) for number in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", text)]


def relu_on_four_points(out: str, folder: Path) -> None:
    first, *_, last = out.splitlines()
    assert "condensed in 0 of 3 seeds" in first
    assert "condensed in 3 of 3 seeds" in last
    assert {path.name for path in folder.iterdir()} == {"lines.png", "neurons.png"}


def three_layers(out: str, folder: Path) -> None:
    layers = {line.split()[0]: numbers(line) for line in out.splitlines()[1:]}
    assert all(values[0] > 30 for values in layers.values())
    assert layers["dense1"][-1] == layers["dense2"][-1] == 1
    assert layers["dense3"][-1] < 10


def teacher(out: str, folder: Path) -> None:
    small, large = (numbers(line) for line in out.splitlines())
    assert max(small[:5]) < min(large[:5]) / 10  # test loss
    assert max(small[5:]) < min(large[5:]) / 2  # k_eff


def two_moons(out: str, folder: Path) -> None:
    *seeds, last = out.splitlines()
    assert len(seeds) == 3
    for line in seeds:
        assert min(numbers(line.partition("one")[2])) > 0.95
    assert min(numbers(last.partition(":")[2])) > 0.8


def dropout(out: str, folder: Path) -> None:
    without, dropped = (numbers(line) for line in out.splitlines())
    assert min(without[1:4]) > 50  # at step 0
    assert min(without[5:8]) > 20
    assert max(dropped[5:8]) < 2


def own_activation(out: str, folder: Path) -> None:
    assert out.splitlines() == [
        "x_tanh_squared: p = 3, 3 predicted, 3 found",
        "gelu: p = 1, 1 predicted, 1 found",
    ]


def own_measure(out: str, folder: Path) -> None:
    rows = [numbers(line) for line in out.splitlines()[2:]]
    assert len(rows) == 4
    assert rows[0][1] < 2 < 20 < rows[-1][1]  # k_eff by std
    assert (folder / "map.png").exists()


def digits(out: str, folder: Path) -> None:
    steps = [numbers(line) for line in out.splitlines()]
    assert [step for step, *_ in steps] == [0, 30, 100]
    assert steps[-1][2] < steps[0][2] / 3
    assert steps[0][-1] == 0 < steps[-1][-1]


def continue_and_perturb(out: str, folder: Path) -> None:
    first, faster, perturbed = (numbers(line) for line in out.splitlines())
    assert first[0] > first[2] > first[4]  # the loss, between the steps
    assert faster[-1] < first[4]
    assert len(perturbed[-4:]) == 4


def derivatives_and_pytorch(out: str, folder: Path) -> None:
    assert "kernel (40, 1, 40, 1)" in out
    assert "Hessian (60, 60)" in out
    assert float(re.search(r"differ by (\S+);", out)[1]) < 1e-12
    assert out.rstrip().endswith("the same weights back: True")


STORIES = {story.__name__: story for story in (
    relu_on_four_points, three_layers, teacher, two_moons, dropout, own_activation, own_measure, digits,
    continue_and_perturb, derivatives_and_pytorch,
)}  # fmt: skip


def test_every_example_has_its_story():
    assert [path.stem for path in EXAMPLES] == sorted(STORIES)


@pytest.mark.trials
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_finds_what_it_says(file, tmp_path):
    STORIES[file.stem](printed(file, tmp_path), tmp_path)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_uses_public_names_only(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) < 25
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    assert not [name for name in (*imported, *names) if re.search(r"(^|\.)_[^_]", name)]


def test_the_same_activation_in_a_file(tmp_path):
    import condensation as c
    from condensation._functions import look_in

    look_in(FOLDER)
    experiment = c.Experiment.load(FOLDER / "own_activation.toml")
    assert c.multiplicity(experiment.network.activation) == 3
