import json
import re

import numpy as np
import pytest
from pyarrow import parquet

from condensation import Experiment, InputError, verify
from condensation._settings import reduced_text
from condensation.data import _sources as sources
from condensation.papers import FIGURES, Claim, Drawing, PaperFigure, PerSeed, Variant, at_most, reproduce
from condensation.papers._variant import NotRun
from condensation.papers.fc.experiments import resnet

NAME = "fc-fig5"  # a small figure


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    reproduce([NAME], seeds=2, out=folder)
    return folder


def test_a_figure_gives_pictures_data_claims_and_a_report(out):
    claims = json.loads((out / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == [FIGURES[NAME].claim_id(claim.key) for claim in FIGURES[NAME].claims]
    for claim in claims:
        assert len(claim["measured"]["seeds"]) == len(claim["holds"]) == 2
        assert claim["verdict"] in ("reproduced", "partly", "not reproduced")
        assert (out / "figures" / f"{claim['figure']}.pdf").exists()
        assert (out / "figures" / f"{claim['figure']}.png").exists()
    table = parquet.read_table(out / "data" / f"{NAME}.parquet").to_pydict()
    assert table["seed"] == [0, 1] * len(FIGURES[NAME].experiments("quick"))
    measured = next(claim for claim in claims if claim["id"] == f"{NAME}-tanh")["measured"]["seeds"]
    np.testing.assert_allclose(table["distance"][:2], measured, rtol=1e-5)
    for path in (out / "index.html", out / "pages" / f"{NAME}.html"):
        page = path.read_text()
        assert not re.search("src=.https?:|href=.https?:(?!//arxiv.org/abs/)", page)
        for target in re.findall(r'href="(?!https:)([^"#]+)', page):
            assert (path.parent / target).exists(), target
    trained = {Experiment.load(path) for path in (out / "experiments" / NAME).glob("*.toml")}
    assert trained == {*FIGURES[NAME].experiments("quick").values()}


def test_what_is_beside_the_report_is_still_verified(out):
    assert [each for each in verify(out) if each.problems] == []


def test_a_second_run_makes_nothing_and_says_the_same(out, monkeypatch):
    before = (out / "claims.json").read_bytes()
    monkeypatch.setattr(FIGURES[NAME], "measured", lambda *_: pytest.fail("made again"))
    sections = reproduce([NAME], seeds=2, out=out)
    assert sections[0].status == "done"
    assert (out / "claims.json").read_bytes() == before


@pytest.mark.trials
def test_the_same_claims_from_nothing(out, tmp_path):
    reproduce([NAME], seeds=2, out=tmp_path, force=True)
    assert (tmp_path / "claims.json").read_bytes() == (out / "claims.json").read_bytes()


@pytest.mark.trials
def test_a_variant_is_a_section_of_its_own(out):
    before = json.loads((out / "claims.json").read_text())
    (section,) = reproduce([NAME], seeds=2, out=out, variant=Variant(eps=1e-4))
    claims = json.loads((out / "claims.json").read_text())
    assert section.variant == "eps 0.0001"
    assert claims[: len(before)] == before
    assert claims[len(before)]["id"] == f"{before[0]['id']}_eps-0.0001"
    assert claims[len(before)]["measured"] != before[0]["measured"]


@pytest.mark.trials
def test_a_failing_figure_is_named_and_the_others_go_on(tmp_path, monkeypatch):
    def broken(*_):
        raise RuntimeError("no picture today")

    monkeypatch.setattr(FIGURES["fc-fig1"], "draw", broken)
    failed, done = reproduce(["fc-fig1", NAME], seeds=2, out=tmp_path)
    assert (failed.status, done.status) == ("failed", "done")
    assert "no picture today" in failed.reason
    for path in (tmp_path / "index.html", tmp_path / "pages" / "fc-fig1.html"):
        assert "no picture today" in path.read_text()
    assert failed.command.startswith("condensation reproduce fc-fig1")
    assert len([*(tmp_path / "experiments" / "fc-fig1").glob("*.toml")]) == len(failed.experiments) == 2
    claims = json.loads((tmp_path / "claims.json").read_text())
    assert {claim["verdict"] for claim in claims if claim["figure"] == "fc-fig1"} == {"not run"}
    assert {claim["figure"] for claim in claims} == {"fc-fig1", NAME}


def test_images_that_cannot_be_had_are_not_run_with_the_reason(tmp_path, monkeypatch):
    def unreachable(name, **_):
        raise InputError(f"{name} cannot be had (no network here)")

    monkeypatch.setattr(sources, "fetch", unreachable)
    monkeypatch.setenv("CONDENSATION_CACHE", str(tmp_path / "cache"))
    (section,) = reproduce(["fc-fig2"], out=tmp_path)
    assert section.status == "not run"
    assert "no network here" in section.reason
    assert {claim["verdict"] for claim in section.claims} == {"not run"}
    assert all("no network here" in claim["why"] for claim in section.claims)


def test_what_was_missing_is_tried_again(tmp_path, monkeypatch):
    whole = FIGURES[NAME].experiments("quick")
    lacking = {"tanh": whole["tanh"], "x_tanh": resnet("tanh", "quick", "cifar100")}

    class Lacking(PaperFigure):
        name, title, paper = NAME, "A figure without all of its images", "FC"
        claims = (
            Claim("tanh", "", "", "", at_most(1), lambda figure: PerSeed([0.01] * len(figure.runs["tanh"].seeds))),
            Claim("x_tanh", "", "", "", at_most(1), lambda figure: PerSeed([0.01] * len(figure.runs["x_tanh"].seeds))),
        )

        @classmethod
        def experiments(cls, scale):
            return lacking

        def draw(self):
            return Drawing("a caption", {})

    monkeypatch.setitem(FIGURES, NAME, Lacking)
    tried = []

    def unreachable(name, **_):
        tried.append(name)
        raise InputError(f"{name} cannot be had")

    monkeypatch.setattr(sources, "fetch", unreachable)
    monkeypatch.setenv("CONDENSATION_CACHE", str(tmp_path / "cache"))
    for count in (1, 2):
        (section,) = reproduce([NAME], seeds=1, out=tmp_path)
        assert section.status == "done"
        assert "cifar100 cannot be had" in section.missing
        assert [claim["verdict"] for claim in section.claims] == ["reproduced", "not run"]
        assert tried == ["cifar100"] * count


def test_bad_input_is_named(tmp_path):
    with pytest.raises(InputError, match="unknown figure 'fc-fig33'; did you mean 'fc-fig3'"):
        reproduce(["fc-fig33"], out=tmp_path)
    with pytest.raises(InputError, match="unknown scale 'huge'; known: quick, paper"):
        reproduce([NAME], out=tmp_path, scale="huge")
    with pytest.raises(InputError, match="seeds must be a whole number of at least 1, not 0"):
        reproduce([NAME], out=tmp_path, seeds=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        reproduce([NAME], out=tmp_path / "file")


def test_every_figure_has_a_quick_and_a_paper_scale():
    for figure in FIGURES.values():
        try:
            quick, paper = (figure.experiments(scale) for scale in ("quick", "paper"))
        except NotRun:  # its settings come from images that cannot be had here
            continue
        assert quick.keys() <= paper.keys()
        reduced = reduced_text(quick, paper)
        assert (dict(quick) == dict(paper)) == (not reduced) or figure.name == "fc-a3"


def test_reproduce_refuses_too_many_seeds_before_it_writes(tmp_path):
    with pytest.raises(InputError, match="seeds must be below"):
        reproduce(("fc-fig3",), seeds=10**13, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
