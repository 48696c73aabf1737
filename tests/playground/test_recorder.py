"""Recordings have the numbers of the library; the tour of the site is the one that the code has now."""

import numpy as np
import pytest
from recordings import TOUR, Opened
from reference import initial_model, loss_at, same, weights_at
from saved_runs import DENSE, fill_two, watched_weights

from condensation import Experiment
from condensation.errors import InputError
from condensation.measure import find_lines
from condensation.playground import _recorder
from condensation.playground._bundle import page
from condensation.playground._library import Library
from condensation.playground._presets import hello, presets
from condensation.playground._recorder import LEAST, MOMENTS, MOST, record, scene_settings
from condensation.playground._session import Session
from condensation.playground._settings import Settings
from condensation.playground._static import NAME, check_target, export_page
from condensation.runs import load_run

CLOSE = 2.0**-15  # of weights
SMALL = Settings(width=9, layers=("tanh", "x_tanh"), seed=4)


@pytest.fixture(scope="module")
def tour():
    return Opened(TOUR.read_text(encoding="utf-8"))


@pytest.fixture
def short(monkeypatch):
    """Recordings of a few steps."""
    monkeypatch.setattr(_recorder, "LEAST", 12)
    monkeypatch.setattr(_recorder, "MOST", 12)
    monkeypatch.setattr(_recorder, "MOMENTS", 5)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs and what says that it is a sweep."""
    folder = fill_two(tmp_path_factory.mktemp("runs"))
    (folder / "swept").mkdir()
    (folder / "swept" / "sweep.json").write_text("{}")
    return folder


@pytest.fixture(scope="module")
def saved(runs):
    return Opened(record(Library([runs]), (), tour=False))


def test_the_page_with_the_tour_has_about_two_megabytes():
    assert len(page(TOUR.read_text(encoding="utf-8")).encode()) < 2_150_000


def test_the_tour_of_the_site_has_what_the_tour_has_now(tour):
    """If this fails, the tour has changed: `make tour` records it anew."""
    wanted = []
    for _, settings in scene_settings():
        if settings not in wanted:
            wanted.append(settings)
    assert [entry["source"] for entry in tour.hello["recorded"]] == [{"do": "open", "settings": s} for s in wanted]
    known = {name: value for name, value in tour.hello.items() if name not in ("library", "recorded", "start")}
    assert known == hello()
    assert tour.hello["start"] == f"scene={presets()['scenes'][0]['name']}"
    assert [one["settings"] for one in tour.hello["library"]] == wanted


def test_the_tour_of_the_site_begins_with_the_weights_of_the_library(tour):
    for entry in tour.hello["recorded"]:
        settings = Settings.from_text(entry["source"]["settings"])
        model, x, y, loss = initial_model(settings)
        opened, arrays = tour.part(entry["opened"])
        if x.ndim == 2:
            same(arrays["x"], x)
        same(arrays["y"], y[: len(arrays["y"])])
        header, first = tour.frames(entry)[0]
        same(first["w"], model.weights(entry["layers"][0]["name"]), CLOSE)
        assert header["step"] == 0
        assert header["loss"] == pytest.approx(loss, rel=1e-8)
        assert len(opened["steps"]) <= MOMENTS
        assert LEAST <= opened["last"] <= MOST
        assert not opened["live"]


def test_a_scene_of_the_site_has_the_numbers_of_train(tour):
    entry = next(one for one in tour.hello["recorded"] if one["source"]["settings"] == Settings().to_text())
    header, arrays = tour.frames(entry)[-1]
    weights = weights_at(Settings(), header["step"])
    same(arrays["w"], weights, CLOSE)
    assert header["loss"] == pytest.approx(loss_at(Settings(), header["step"]), rel=1e-8)
    lines = find_lines(weights)
    assert (header["lines"]["count"], header["lines"]["k_eff"]) == (lines.count, pytest.approx(lines.k_eff, rel=1e-8))
    assert header["reduced"]["step"] == header["step"]


@pytest.mark.trials
def test_the_tour_recorded_anew_is_the_one_of_the_site(tour):
    new = Opened(record(Library(), (), tour=True))
    assert len(new.lines) == len(tour.lines)
    for one, other in zip(new.hello["recorded"], tour.hello["recorded"], strict=True):
        assert one == other
        close = 1e-3 if one["source"]["settings"]["optimizer"] == "flow" else 1e-4
        for (header, arrays), (kept, values) in zip(new.frames(one), tour.frames(other), strict=True):
            assert header["step"] == kept["step"]
            assert header["loss"] == pytest.approx(kept["loss"], rel=close)
            same(values["w"], arrays["w"], close)


@pytest.mark.trials
def test_a_training_is_recorded_with_all_its_layers_and_texts(short):
    recorder = _recorder.Recorder()
    recorder.training("small", SMALL)
    recorder.training("again", SMALL)  # is the same one
    recording = Opened(recorder.text(tour=False))
    (entry,) = recording.hello["recorded"]
    assert [layer["name"] for layer in entry["layers"]] == ["dense1", "dense2"]
    for number, layer in enumerate(("dense1", "dense2")):
        frames = recording.frames(entry, number)
        assert [header["step"] for header, _ in frames] == [0, 1, 3, 7, 12]
        for header, arrays in frames:
            same(arrays["w"], weights_at(SMALL, header["step"], layer), CLOSE)
        assert [header["ended"] for header, _ in frames] == [False] * 4 + [True]
        session = Session()
        session.open(SMALL.to_text())
        session.choose_layer(layer)
        session.frame({"at": 7}, np.inf)
        assert session.shown == 7
        text, _ = session.export()
        for kind, pieces in recording.texts(entry, number).items():
            assert "7".join(pieces) == text[kind]
    assert Experiment.from_toml("7".join(recording.texts(entry)["toml"])).steps == 7
    assert recording.hello["start"] == "layers=tanh%2Cx_tanh&width=9&seed=4"
    assert recording.hello["scenes"] == []


def test_a_training_that_diverges_is_recorded_to_its_last_moment(short):
    recorder = _recorder.Recorder()
    recorder.training(
        "wild", Settings(optimizer="gd", rate=100, std_w=1, std_a=1, width=50, formula="100*x", layers=("relu",))
    )
    recording = Opened(recorder.text(tour=False))
    (entry,) = recording.hello["recorded"]
    header, _ = recording.frames(entry)[-1]
    assert np.isfinite(header["loss"])
    assert header["diverged"] > header["step"]
    assert "diverged" in header["message"]
    assert header["ended"]


def test_saved_runs_are_recorded_and_sweeps_are_listed_with_the_reason(saved, runs):
    sources = [entry["source"] for entry in saved.hello["recorded"]]
    assert sources == [
        {"do": "run", "name": "dense", "seed": 0},
        {"do": "run", "name": "dense", "seed": 1},
        {"do": "run", "name": "watched", "seed": 0},
    ]
    assert saved.hello["start"] == "run=dense"
    run = load_run(runs / "dense")
    for number, entry in enumerate(saved.hello["recorded"][:2]):
        frames = saved.frames(entry)
        assert [header["step"] for header, _ in frames] == run.saved.tolist()
        for header, arrays in frames:
            same(arrays["w"], run.weights("dense1", header["step"])[number], CLOSE)
    for header, arrays in saved.frames(saved.hello["recorded"][2]):
        same(arrays["w"], watched_weights(header["step"]), CLOSE)
    assert saved.texts(saved.hello["recorded"][2]) is None
    assert saved.texts(saved.hello["recorded"][0])["toml"][0].startswith(f"# seed {DENSE.seed}\n")
    listed = {one["name"]: one for one in saved.hello["library"]}
    assert not any(listed[name]["shut"] for name in ("dense", "watched"))
    assert listed["swept"]["shut"]
    assert "condensation play" in listed["swept"]["problem"]


def test_no_path_of_this_machine_is_in_a_recording(saved, runs):
    for number in range(len(saved.lines)):
        assert str(runs.parent) not in str(saved.part(number)[0])


def test_long_runs_and_many_seeds_are_thinned(runs, monkeypatch):
    monkeypatch.setattr(_recorder, "MOMENTS", 3)
    monkeypatch.setattr(_recorder, "MOST_SEEDS", 1)
    recording = Opened(record(Library([runs / "dense"]), (), tour=False))
    (entry,) = recording.hello["recorded"]
    steps = [header["step"] for header, _ in recording.frames(entry)]
    assert (len(steps), steps[0], steps[-1]) == (3, 0, 40)
    opened, _ = recording.part(entry["opened"])
    assert (opened["seeds"], opened["seed"]) == (["3"], 0)


def test_a_damaged_run_is_listed_and_the_others_are_recorded(runs, tmp_path):
    import shutil

    shutil.copytree(runs / "watched", tmp_path / "good")
    shutil.copytree(runs / "dense", tmp_path / "bad")
    for path in (tmp_path / "bad").glob("*.safetensors"):
        content = bytearray(path.read_bytes())
        content[-9] ^= 1
        path.write_bytes(content)
    recording = Opened(record(Library([tmp_path]), (), tour=False))
    assert [entry["source"]["name"] for entry in recording.hello["recorded"]] == ["good"]
    listed = {one["name"]: one for one in recording.hello["library"]}
    assert listed["bad"]["shut"]
    assert listed["bad"]["problem"]


def test_nothing_to_record_is_an_error(runs):
    with pytest.raises(InputError, match="nothing to record"):
        record(Library([runs / "swept"]), (), tour=False)


def test_an_unknown_preset_is_an_error_before_anything_is_trained():
    told = []
    with pytest.raises(InputError, match="fc-fig3-tanh"):
        record(Library(), ["fc-fig3-tahn"], tour=True, report=lambda *given: told.append(given))
    assert told == []


def test_a_folder_that_is_not_its_own_is_left_alone(tmp_path, short, runs):
    library = Library([runs / "watched"])
    told = []
    target = tmp_path / "new" / "page"
    path = export_page(target, library, (), False, lambda *given: told.append(given))
    assert path == target / NAME
    assert [(done, total) for _, done, total in told] == [(0, 1), (1, 1)]
    first = path.read_text(encoding="utf-8")
    export_page(target, library, (), False, lambda *given: None)  # its own is replaced
    assert path.read_text(encoding="utf-8") == first
    (target / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="name a new folder"):
        check_target(target)
    other = tmp_path / "site"
    other.mkdir()
    check_target(other)  # empty
    (other / NAME).write_text("<!doctype html>\nsomebody's page")
    with pytest.raises(InputError, match=r"index\.html, which --export did not write"):
        export_page(other, library, (), False, lambda *given: None)
    assert (other / NAME).read_text() == "<!doctype html>\nsomebody's page"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        check_target(tmp_path / "file")
    with pytest.raises(InputError, match="cannot be made"):
        check_target(tmp_path / "file" / "under")
