import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation.papers.claims import Claim, Rule, Seeds, Statement, judge
from condensation.papers.fc.statements import ALL
from condensation.papers.lab import untrained
from condensation.papers.make import RECIPES
from condensation.papers.variant import Variant

SYNTHETIC = (
    *("fc-fig1", "fc-fig3"),
    *(pytest.param(f"fc-{name}", marks=pytest.mark.trials) for name in ("fig4", "fig5", "fig6", "prop1", "a5", "a6")),
)
STATEMENT = Statement("x", "f", "Fig. 1", "s", "q", Rule("exactly", 1))


def test_the_rule_of_the_verdict():
    assert judge([True] * 8 + [False] * 2) == "reproduced"
    assert judge([True] * 7 + [False] * 3) == "partly"
    assert judge([True] * 3 + [False] * 7) == "partly"
    assert judge([True] * 2 + [False] * 8) == "not reproduced"


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.randoms())
def test_the_verdict_depends_on_the_share_alone_and_grows_with_it(holds, random):
    order = ["not reproduced", "partly", "reproduced"]
    shuffled = holds.copy()
    random.shuffle(shuffled)
    assert judge(holds) == judge(shuffled) == judge(holds * 3)
    better = [True] * len(holds)
    assert order.index(judge(better)) >= order.index(judge(holds))


@given(st.floats(allow_nan=True), st.floats(allow_nan=False))
def test_nan_fits_no_rule_and_every_number_fits_one_side(value, bound):
    words = {word: Rule(word, bound).holds(value) for word in ("exactly", "at least", "at most")}
    if np.isnan(value):
        assert not any(words.values())
    else:
        assert words["at least"] or words["at most"]
        assert words["exactly"] == (words["at least"] and words["at most"])


def test_a_seed_whose_value_means_nothing_does_not_hold():
    assert Seeds([1, 1], [True, False]).holds(Rule("exactly", 1)) == (True, False)


def test_a_claim_as_plain_data():
    claim = Claim(STATEMENT, "quick", Seeds([1, 2, float("nan")]), Seeds([0.0, 0.0, 0.0]), why="because")
    plain = claim.to_plain()
    assert {"id", "paper", "where", "statement", "expected", "measured", "verdict", "scale", "figure"} <= plain.keys()
    assert plain["measured"] == {"seeds": [1, 2, None], "valid": [True] * 3, "median": 1.5, "low": 1, "high": 2}
    assert plain["verdict"] == "partly"
    assert plain["untrained"]["verdict"] == "not reproduced"
    assert Claim(STATEMENT, "quick").to_plain()["verdict"] == "not run"


def test_each_statement_belongs_to_a_figure_and_has_a_name_of_its_own():
    every = [statement.id for recipe in RECIPES.values() for statement in recipe.statements]
    assert len(set(every)) == len(every)
    for recipe in RECIPES.values():
        assert recipe.statements
        for statement in recipe.statements:
            assert statement.id.startswith(recipe.name)
            assert statement.figure == recipe.name
    assert {statement.id for statement in ALL} == {key for key in every if key.startswith("fc-")}


@pytest.mark.parametrize("name", SYNTHETIC)
def test_untrained_weights_are_not_reproduced(runs_of, name):
    """Every statement on trained weights fails for random ones: what reproduces is not an artefact of the measure."""
    recipe, runs = RECIPES[name], runs_of(name)
    measured = recipe.measure({key: untrained(run) for key, run in runs.items()}, Variant())
    about_training = [statement for statement in recipe.statements if statement.trained]
    assert about_training
    for statement in about_training:
        holds = measured[statement.id].holds(statement.expected)
        assert len(holds) == 10
        assert not any(holds), statement.id
