"""What the README says of the paper-scale results is what they are."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from condensation.papers import judge
from condensation.papers._report import paper_scale

ROOT = Path(__file__).parents[1]
VERDICTS = ("reproduced", "partly", "not reproduced", "not decided", "not run")


@pytest.fixture(scope="module")
def claims():
    return json.loads((ROOT / "results" / "claims.json").read_text())


def counted(claims, paper, ours):
    found = Counter(one["verdict"] for one in claims if one["paper"] == paper and one.get("ours", False) == ours)
    return tuple(found[verdict] for verdict in VERDICTS)


@pytest.mark.parametrize(
    ("row", "paper", "ours"),
    [
        (r"FC, (\d+)", "FC", False),
        (r"FC, (\d+) additional questions", "FC", True),
        (r"CNN, (\d+)", "CNN", False),
        (r"CNN, (\d+) additional questions", "CNN", True),
    ],
)
def test_the_readme_counts_verdicts_rightly(claims, row, paper, ours):
    found = re.search(
        rf"^\| {row} \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", (ROOT / "README.md").read_text(), re.M
    )
    assert found is not None
    total, *numbers = map(int, found.groups())
    assert tuple(numbers) == counted(claims, paper, ours)
    assert total == sum(numbers)


def test_the_table_in_the_package_is_that_of_the_results(claims):
    assert paper_scale() == {claim["id"]: {n: claim[n] for n in ("expected", "verdict", "holds")} for claim in claims}


def test_each_verdict_is_that_of_its_seeds(claims):
    assert [claim["id"] for claim in claims if judge(claim["holds"]) != claim["verdict"]] == []


def test_results_are_of_the_papers_scale_and_their_pictures_are_there(claims):
    assert {one["scale"] for one in claims} == {"paper"}
    for name in {one["figure"] for one in claims if one["verdict"] != "not run"}:
        assert (ROOT / "results" / "figures" / f"{name}.png").exists()
