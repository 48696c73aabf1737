"""What the README says of the paper-scale results is what they are."""

import json
import re
import tomllib
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from condensation import papers
from condensation.papers import FIGURES, judge
from condensation.papers._report import paper_scale

ROOT = Path(__file__).parents[1]
VERDICTS = ("reproduced", "partly", "not reproduced", "not decided", "not run")


@pytest.fixture(scope="module")
def claims():
    return json.loads((ROOT / "results" / "claims.json").read_text())


def counted(claims, names, ours):
    found = Counter(
        one["verdict"] for one in claims if one["paper"] in names.split() and one.get("ours", False) == ours
    )
    return tuple(found[verdict] for verdict in VERDICTS)


@pytest.mark.parametrize(
    ("row", "names", "ours"),
    [
        (r"FC, (\d+)", "FC", False),
        (r"FC, (\d+) additional questions", "FC", True),
        (r"CNN, (\d+)", "CNN", False),
        (r"CNN, (\d+) additional questions", "CNN", True),
        (r"after the initial stage, (\d+)", "BEYOND", False),
        (r"early alignment, (\d+)", "ALIGN", False),
        (r"saddle to saddle, (\d+)", "SADDLE", False),
        (r"dropout, (\d+)", "DROPOUT", False),
        (r"overview, (\d+)", "OVERVIEW", False),
        (r"attention, (\d+)", "ATTENTION", False),
        (r"later sources, (\d+) additional questions", "BEYOND ALIGN SADDLE DROPOUT OVERVIEW ATTENTION", True),
    ],
)
def test_the_readme_counts_verdicts_rightly(claims, row, names, ours):
    found = re.search(
        rf"^\| {row} \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", (ROOT / "README.md").read_text(), re.M
    )
    assert found is not None
    total, *numbers = map(int, found.groups())
    assert tuple(numbers) == counted(claims, names, ours)
    assert total == sum(numbers)


def test_the_table_in_the_package_is_that_of_the_results(claims):
    assert paper_scale() == {claim["id"]: {n: claim[n] for n in ("expected", "verdict", "holds")} for claim in claims}


def test_each_verdict_is_that_of_its_seeds(claims):
    assert [claim["id"] for claim in claims if judge(claim["holds"]) != claim["verdict"]] == []


def test_results_are_of_the_papers_scale_and_their_pictures_are_there(claims):
    assert {one["scale"] for one in claims} == {"paper"}
    for name in {one["figure"] for one in claims if one["verdict"] != "not run"}:
        assert (ROOT / "results" / "figures" / f"{name}.png").exists()


@pytest.fixture(scope="module")
def collect():
    spec = spec_from_file_location("collect", ROOT / "results" / "collect.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_kept_seeds_are_judged_by_a_new_rule_of_the_same_quantity(collect):
    claim = {
        "id": "cnn-fig3-final-conv1", "figure": "cnn-fig3", "quantity": "lines of kernels at the end", "expected": "1",
        "measured": {"seeds": [3, 4, None, 2, 1], "valid": [True, True, True, False, False]},
        "holds": [False, False, False, False, None], "verdict": "not reproduced",
        "why": "Expected 1; found where it fails: 3, 4, nan, 2.",
    }  # fmt: skip
    again = collect.reword(claim)
    assert (again["expected"], again["verdict"]) == ("at most 3", "not reproduced")
    assert again["holds"] == [True, False, False, False, None]
    assert again["why"].endswith("our reading of it. Expected at most 3; found where it fails: 4, nan, 2.")
    assert collect.reword(claim | {"quantity": "another"}) == claim | {"quantity": "another"}


def test_the_end_of_cnn_fig_3_is_one_or_a_few_lines(claims):
    final = [claim for claim in claims if claim["id"].startswith("cnn-fig3-final")]
    assert {(claim["expected"], claim["verdict"]) for claim in final} == {("at most 3", "reproduced")}
    assert {claim["untrained"]["verdict"] for claim in final} == {"not reproduced"}


def test_rules_that_were_changed_are_those_of_claims_and_told(claims):
    known = {figure.claim_id(claim.key) for figure in FIGURES.values() for claim in figure.claims}
    changed = tomllib.loads(Path(papers.__file__).with_name("revisions.toml").read_text(encoding="utf-8"))
    assert changed.keys() <= known
    kept = {claim["id"]: claim for claim in claims}
    assert all("Judged before by another rule" in kept[name]["why"] for name in changed)


def test_kept_results_of_noise_are_of_the_settings_in_the_code(claims):
    from condensation.papers.dropout import deep, samples

    kept = {claim["id"]: claim for claim in claims}
    told = kept["dropout-samples-enough"]["why"].split("dropout 10%, ")[1].split(";")[0]
    assert [int(n) for n in re.findall(r"(\d+): ", told)] == [*samples.NUMBERS["paper"]]
    steps = re.search(r"`dropout-deep`, ([\d,]+) steps", (ROOT / "docs" / "findings.md").read_text())
    assert steps is not None
    assert {deep.SIZES["paper"][1], samples.SIZES["paper"][1]} == {int(steps[1].replace(",", ""))}


def test_reasons_of_later_sources_are_in_words(claims):
    later = ["ALIGN", "SADDLE", "DROPOUT", "OVERVIEW", "ATTENTION", "BEYOND"]
    failed = [claim for claim in claims if claim["paper"] in later and claim["verdict"] != "reproduced"]
    assert len(failed) > 60
    numbers = ("Expected ", "k_eff at the end", "Time at levels", "Loss of the plateaus")
    assert [claim["id"] for claim in failed if claim["why"].startswith(numbers) or not claim["why"]] == []
