import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation.papers import FIGURES, Claim, Finding, PaperFigure, PerSeed, Rule, Variant, judge

SYNTHETIC = (
    *("fc-fig1", "fc-fig3"),
    *(
        pytest.param(f"fc-{name}", marks=pytest.mark.trials)
        for name in ("fig4", "fig5", "fig6", "prop1", "degenerate", "a5", "a6", "relu", "growth", "reset")
    ),
)
CLAIM = Claim("x", "Fig. 1", "s", "q", Rule("exactly", 1), lambda figure: PerSeed([]))


class Figure(PaperFigure):
    name, title, paper, claims = "f", "F", "FC", (CLAIM,)


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


@given(st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=20))
def test_undecided_seeds_are_left_out_unless_they_are_most_of_all(holds):
    decided = [each for each in holds if each is not None]
    assert judge(holds) == (judge(decided) if 2 * len(decided) >= len(holds) else "not decided")


@given(st.floats(allow_nan=True), st.floats(allow_nan=False))
def test_nan_fits_no_rule_and_every_number_fits_one_side(value, bound):
    words = {word: Rule(word, bound).holds(value) for word in ("exactly", "at least", "at most")}
    if np.isnan(value):
        assert not any(words.values())
    else:
        assert words["at least"] or words["at most"]
        assert words["exactly"] == (words["at least"] and words["at most"])


def test_a_seed_whose_value_means_nothing_does_not_hold():
    assert PerSeed([1, 1], [True, False]).holds(Rule("exactly", 1)) == (True, False)


def test_a_seed_that_does_not_meet_the_premise_neither_supports_nor_refutes():
    undecided = PerSeed([2, 4, 9], decided=[True, True, False])
    assert undecided.holds(Rule("at most", 4)) == (True, True, None)
    finding = Finding(Figure, CLAIM, "quick", Variant(), PerSeed([1, 7, 8], decided=[True, False, False]))
    assert (finding.verdict, finding.to_plain()["holds"]) == ("not decided", [True, None, None])
    assert finding.failing == "2 seeds of 3 do not meet the premise (found there: 7, 8)."


def test_a_finding_as_plain_data():
    about = Figure, CLAIM, "quick", Variant()
    plain = Finding(*about, PerSeed([1, 2, float("nan")]), PerSeed([0.0, 0.0, 0.0]), why="because").to_plain()
    assert (plain["id"], plain["figure"], plain["paper"], plain["expected"]) == ("f-x", "f", "FC", "1")
    assert plain["measured"] == {"seeds": [1, 2, None], "valid": [True] * 3, "median": 1.5, "low": 1, "high": 2}
    assert plain["verdict"] == "partly"
    assert plain["untrained"]["verdict"] == "not reproduced"
    assert Finding(*about).to_plain()["verdict"] == "not run"
    assert Finding(*about[:3], Variant(eps=1e-4)).to_plain()["id"] == "f-x_eps-0.0001"


def test_each_claim_has_a_name_of_its_own():
    every = []
    for name, figure in FIGURES.items():
        assert figure.name == name
        ids = [figure.claim_id(claim.key) for claim in figure.claims]
        assert ids
        assert all(key.startswith(f"{name}-") for key in ids)
        every += ids
    assert len(set(every)) == len(every)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SYNTHETIC)
def test_untrained_weights_are_not_reproduced(measured_of, name):
    """Every claim on trained weights fails for random ones: what reproduces is not an artefact of the measure."""
    about_training = {key: each for key, each in measured_of(name, moved=False).items() if each[2]}
    assert about_training
    for key, (values, rule, _) in about_training.items():
        holds = values.holds(rule)
        assert len(holds) == 10
        assert not any(holds), key
