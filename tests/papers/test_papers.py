import json
import re

import numpy as np
import pytest

from condensation import InputError
from condensation.measure import count_lines
from condensation.papers import Claim, fc, judge, reproduce
from condensation.training.train import train


def test_the_rule_of_the_verdict():
    assert judge([True] * 8 + [False] * 2) == "reproduced"
    assert judge([True] * 7 + [False] * 3) == "partly"
    assert judge([True] * 3 + [False] * 7) == "partly"
    assert judge([True] * 2 + [False] * 8) == "not reproduced"


@pytest.fixture(scope="module")
def runs():
    names = ("tanh", "sigmoid", "x_tanh", "x2_tanh")
    return {name: train(fc.fig3_experiment(name), 10) for name in names}


def test_untrained_weights_are_not_reproduced(runs):
    for run in runs.values():
        start = count_lines(run.history("dense1")[:, :1])
        claim = fc.fig3_claim("tanh", start.lines[:, 0], start.condensed[:, 0], "")
        assert claim.verdict == "not reproduced"
        assert not start.condensed.any()


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
def test_multiplicity_one_condenses_on_one_line(runs, name):
    """Robust over seeds: tanh and sigmoid on one line in at least seven of ten at epoch 100."""
    run = runs[name]
    history = count_lines(run.history("dense1")[:, run.saved == 100])
    assert (history.condensed & (history.lines == 1)).sum() >= 7


@pytest.mark.parametrize("name", ["x_tanh", "x2_tanh"])
def test_higher_multiplicity_gives_more_lines_than_one(runs, name):
    run = runs[name]
    history = count_lines(run.history("dense1")[:, run.saved == 100])
    assert np.median(history.lines) >= 2
    assert np.median(history.k_eff) > 1.5


def test_condensation_is_transient(runs):
    history = count_lines(runs["tanh"].history("dense1"))
    middle = np.median(history.k_eff, axis=0)
    assert middle[0] > 40
    assert middle.min() < 1.1
    assert middle[-1] > 3


def test_reproduce_writes_pictures_claims_and_report(tmp_path):
    sections = reproduce(["fc-fig3"], seeds=2, out=tmp_path)
    claims = json.loads((tmp_path / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == [f"fc-fig3-{name}" for name in fc.FIG3_PANELS]
    for claim in claims:
        assert len(claim["measured"]["seeds"]) == 2
        assert claim["verdict"] in ("reproduced", "partly", "not reproduced")
        assert (tmp_path / "figures" / f"{claim['figure']}.pdf").exists()
    page = (tmp_path / "index.html").read_text()
    for claim in sections[0].findings.claims:
        assert claim.statement in page
    assert not re.search(r"(src|href)=.https?:", page)
    again = reproduce(["fc-fig3"], seeds=2, out=tmp_path / "again")
    assert (tmp_path / "again" / "claims.json").read_text() == (tmp_path / "claims.json").read_text()
    assert again[0].findings.claims == sections[0].findings.claims


def test_an_unknown_figure_and_a_bad_folder_are_named(tmp_path):
    with pytest.raises(InputError, match="unknown figure 'fc-fig33'; did you mean 'fc-fig3'"):
        reproduce(["fc-fig33"], out=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written to"):
        reproduce(["fc-fig3"], out=tmp_path / "file")
    with pytest.raises(InputError, match="seeds must be a whole number of at least 1, not 0"):
        reproduce(["fc-fig3"], out=tmp_path, seeds=0)


def test_a_claim_without_measurements_was_not_run():
    claim = Claim("x", "FC", "Fig. 1", "s", 1, (), (), "quick", "f")
    assert claim.to_plain()["verdict"] == "not run"


def test_the_seed_shown_is_the_median_one():
    assert fc.median_seed(np.array([1, 1, 9]), np.array([1.2, 1.1, 9])) == 0
