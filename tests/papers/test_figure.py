"""The mechanism of the figures, on a small figure of its own."""

import json
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from condensation import InputError
from condensation._dependencies import dependencies, digest
from condensation.data import Images, two_waves
from condensation.data import _sources as sources
from condensation.experiment import Experiment
from condensation.initialization import Init, Normal
from condensation.networks import Dense
from condensation.optimizers import Adam
from condensation.papers import (
    FIGURES,
    Claim,
    Drawing,
    PaperFigure,
    PerSeed,
    Variant,
    _reproduce,
    at_least,
    at_most,
    exactly,
    reproduce,
)
from condensation.papers._figure import Available
from condensation.papers._trainings import CODE, Training, untrained
from condensation.papers._variant import NotRun
from condensation.papers._work import find
from condensation.runs._checkpoints import RunCheckpoints
from condensation.saving import Evenly
from condensation.training import _train as training

NAME = "test-small"


def small(activation: str = "tanh") -> Experiment:
    return Experiment(
        Dense((1, 6, 1), activation), Init(Normal(std=0.1)), two_waves(n=8, low=-1, high=1), Adam(1e-2), 20,
        save=Evenly(3), record=Evenly(3),
    )  # fmt: skip


def _moved(name: str) -> "Claim[Small]":
    return Claim(
        name, "Fig. 0", "the weights move", "largest change", at_least(1e-3), lambda figure: figure.moved[name],
        lambda figure: pytest.fail("a reason for a claim that holds"), "a note",
    )  # fmt: skip


class Small(PaperFigure):
    name, title, paper = NAME, "A small figure", "FC"
    measured_times = 0
    claims = (
        _moved("tanh"),
        _moved("relu"),
        _moved("images"),
        Claim(
            "still", "Fig. 0", "nothing moves", "largest change", at_most(0), lambda figure: figure.moved["tanh"],
            lambda figure: f"it moves in {len(figure.others['tanh, eps 1e-30'].seeds)} seeds too", trained=False,
        ),
        Claim("two", "Fig. 0", "two seeds", "seeds", exactly(3), lambda figure: PerSeed([figure.seeds]), trained=False),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale):
        images = Experiment(Dense((784, 6, 10)), Init(Normal(std=0.1)), Images("mnist", n=10, flat=True), Adam(0.1), 2)
        return {"tanh": small(), "relu": small("relu").replace(steps=20 if scale == "quick" else 30), "images": images}

    @classmethod
    def evidence(cls, scale):
        return {"tanh, eps 1e-30": Variant(eps=1e-30).apply(small()), "again": small()}

    @cached_property
    def moved(self):
        type(self).measured_times += 1
        weights = self.runs.each(lambda name, run: run.history(1))
        return weights.each(lambda name, each: PerSeed(np.abs(each[:, -1] - each[:, 0]).max(axis=(1, 2))))

    def draw(self):
        from matplotlib.figure import Figure

        return Drawing("a caption", {"": Figure(), "loss": Figure()}, data=self.columns_of_claims(["tanh", "images"]))


@pytest.fixture
def registered(monkeypatch, tmp_path):
    """The small figure among the others, and no images to be had."""

    def unreachable(name, **_):
        raise InputError(f"{name} cannot be had (no network here)")

    monkeypatch.setattr(sources, "fetch", unreachable)
    monkeypatch.setenv("CONDENSATION_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(FIGURES, NAME, Small)
    Small.measured_times = 0
    return tmp_path / "out"


def claims_in(section):
    return {claim["id"].removeprefix(f"{NAME}-"): claim for claim in section.claims}


@pytest.mark.trials
def test_a_figure_is_observed_once_trained_and_once_untrained(registered):
    (section,) = reproduce([NAME], seeds=2, out=registered, n_jobs=1)
    claims = claims_in(section)
    assert section.status == "done", section.reason
    assert Small.measured_times == 2
    assert claims["tanh"]["verdict"] == "reproduced"
    assert claims["tanh"]["untrained"]["seeds"] == [0, 0]
    assert claims["tanh"]["why"] == "a note"
    assert "untrained" not in claims["still"]
    assert (claims["still"]["verdict"], claims["still"]["why"]) == ("not reproduced", "it moves in 2 seeds too")
    assert claims["two"]["why"] == "Expected 3; found where it fails: 2."
    assert section.pictures == [NAME, f"{NAME}-loss"]
    assert section.runs["tanh"] == section.runs["again"]


@pytest.mark.trials
def test_a_run_that_cannot_be_had_is_told_with_its_claims_and_tried_again(registered, monkeypatch):
    for _ in range(2):
        (section,) = reproduce([NAME], seeds=2, out=registered, n_jobs=1)
        claims = claims_in(section)
        assert claims["images"]["verdict"] == "not run"
        assert "no network here" in claims["images"]["why"]
        assert "no network here" in section.missing
        assert [claim for claim, plain in claims.items() if plain["verdict"] == "not run"] == ["images"]


def test_without_names_figures_on_request_are_left_out(registered, monkeypatch):
    class Asked(Small):
        name, on_request = f"{NAME}-asked", True

    monkeypatch.setitem(FIGURES, Asked.name, Asked)
    monkeypatch.setattr(_reproduce, "FIGURES", {NAME: Small, Asked.name: Asked})
    assert [section.name for section in reproduce(seeds=2, out=registered, n_jobs=1)] == [NAME]
    assert [section.name for section in reproduce([Asked.name], seeds=2, out=registered, n_jobs=1)] == [Asked.name]


def test_a_wrong_key_fails_and_is_not_passed_over_as_not_run(registered, monkeypatch):
    wrong = Claim("tnah", "", "", "", at_least(0), lambda figure: figure.moved["tnah"])
    monkeypatch.setattr(Small, "claims", (wrong,))
    (section,) = reproduce([NAME], seeds=2, out=registered, n_jobs=1)
    assert (section.status, section.reason) == ("failed", "KeyError: 'tnah'")
    with pytest.raises(NotRun, match="gone"):
        Available({"a": 1}, {"b": "gone"})["b"]


def test_evidence_is_trained_with_the_captioned_settings_only(registered):
    (section,) = reproduce([NAME], seeds=2, out=registered, n_jobs=1, variant=Variant(eps=1e-4))
    assert [*section.runs] == ["tanh", "relu"]
    still = next(claim for claim in section.claims if claim["id"] == f"{NAME}-still_eps-0.0001")
    assert still["why"].startswith("Expected at most 0; found")
    assert section.settings["changed"] == "eps 0.0001"


@pytest.fixture
def second(monkeypatch):
    """A figure that trains what the small one trains."""

    class Second(Small):
        name = "test-second"

    monkeypatch.setitem(FIGURES, Second.name, Second)
    return Second.name


def test_what_two_figures_train_is_trained_once(registered, second, monkeypatch):
    finished, keep = [], RunCheckpoints.keep

    def counting(self, checkpoints):
        for member, kept in checkpoints.items():
            key, seed = self.places[member]
            finished.extend([(self.folders[key].fingerprint, seed)] * kept.finished)
        keep(self, checkpoints)

    monkeypatch.setattr(RunCheckpoints, "keep", counting)
    sections = reproduce([NAME, second], seeds=2, out=registered, n_jobs=1)
    assert [section.status for section in sections] == ["done", "done"]
    assert len(finished) == len({*finished}) == 3 * 2


@pytest.mark.trials
def test_processes_side_by_side_give_the_same_numbers(registered, second):
    alone = registered.parent / "alone"
    sections = reproduce([NAME, second], seeds=2, out=registered, n_jobs=2)
    reproduce([NAME], seeds=2, out=alone, n_jobs=1)
    assert [section.status for section in sections] == ["done", "done"]
    own = {claim["id"]: claim for claim in json.loads((registered / "claims.json").read_text())}
    for claim in json.loads((alone / "claims.json").read_text()):
        assert own[claim["id"]] == claim
    assert len([*(registered / "runs").iterdir()]) == 3


def test_the_runs_of_other_code_are_trained_again(tmp_path):
    one = Training(small(), 2, tmp_path)
    one.prepare()
    before, notes = one.run()
    assert one.finished
    one.prepare()
    assert one.finished
    (one.path / CODE).write_text("other code")
    one.prepare()
    assert not one.finished
    after, _ = one.run()
    np.testing.assert_array_equal(before.loss, after.loss)
    assert notes == []


def test_warnings_are_told_whenever_a_run_was_trained(tmp_path):
    eager = Training(small().replace(**{"optimizer.eps": 10.0}), 1, tmp_path)
    eager.prepare()
    first, again = eager.run()[1], eager.run()[1]
    assert first == again
    assert "below Adam's eps" in first[0]


def test_a_claim_on_both_instances():
    run = training.train(small(), 2)
    observed, control = Small({"tanh": run}), Small({"tanh": untrained(run)})
    finding = find(observed, control, Small.claim("tanh"))
    assert finding.verdict == "reproduced"
    assert finding.untrained is not None
    assert not any(finding.untrained.holds(finding.claim.rule))


def package(root: Path) -> Path:
    """A package in which a figure needs a measure through a lazy room, and others need other things."""
    files = {
        "__init__.py": "",
        "measure/__init__.py": "",
        "measure/__init__.pyi": "from .lines import count as count\n",
        "measure/lines.py": "from . import angles\n",
        "measure/angles.py": "",
        "measure/other.py": "",
        "play.py": "from .papers import fig1\n",
        "papers/__init__.py": "",
        "papers/fig1.py": "from typing import TYPE_CHECKING\nfrom ..measure import count\n"
        "if TYPE_CHECKING:\n    from .words import Word\ndef draw():\n    from ..pictures import picture\n",
        "papers/fig2.py": "from package.measure.other import x\n",
        "papers/words.py": "",
        "pictures.py": "import numpy\n",
    }
    for name, text in files.items():
        path = root / "package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "package"


def test_a_figure_depends_on_what_it_imports_and_on_nothing_else(tmp_path):
    root = package(tmp_path)
    needed = {path.relative_to(root).as_posix() for path in dependencies("package.papers.fig1", root)}
    lazily = {"measure/__init__.py", "measure/lines.py", "measure/angles.py"}
    assert needed == {"papers/fig1.py", "pictures.py"} | lazily
    first = digest(["package.papers.fig1"], root)
    for other in ("play.py", "papers/fig2.py", "papers/words.py", "measure/other.py"):
        (root / other).write_text("x = 1\n")
    assert digest(["package.papers.fig1"], root) == first
    (root / "measure/angles.py").write_text("x = 1\n")
    assert digest(["package.papers.fig1"], root) != first


def test_an_edit_of_the_playground_or_of_another_figure_remakes_no_figure():
    names = {path.as_posix().partition("condensation/")[2] for path in dependencies("condensation.papers.fc.fig3")}
    assert {"papers/fc/experiments.py", "measure/_lines.py", "drawing/_similarity.py", "theory/_directions.py"} <= names
    assert not {
        name for name in names if name.startswith(("playground", "cli", "pytorch", "papers/cnn", "papers/phases"))
    }
    assert "papers/fc/fig2.py" not in names
    trained = {path.as_posix().partition("condensation/")[2] for path in dependencies("condensation.training._train")}
    assert {"training/_engine.py", "networks/_dense.py", "data/_synthetic.py", "experiment.py"} <= trained
    assert not {name for name in trained if name.startswith(("papers", "drawing"))}
