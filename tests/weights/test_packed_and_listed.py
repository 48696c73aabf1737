"""Files of joblib and scikit-learn, weights in lists, and archives in archives: read as what was saved."""

import gzip
import io
import pickle
import tarfile
import zipfile
import zlib

import joblib
import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier

from condensation.errors import InputError
from condensation.weights import measure_path, open_model_file

STREAM = np.random.default_rng(0)


def normal(*shape):
    return STREAM.normal(size=shape).astype(np.float32)


def units_in(path):
    return {own.name: own.weights() for own in open_model_file(path).units() if not own.reason}


@pytest.mark.parametrize("compress", [0, 3, ("zlib", 9), ("gzip", 3)])
def test_joblib_is_read_as_it_packs(tmp_path, compress):
    state = {"fc.weight": normal(40, 20), "fc.bias": normal(40)}
    joblib.dump(state, tmp_path / "m.joblib", compress=compress)
    expected = np.concatenate([state["fc.weight"], state["fc.bias"][:, None]], axis=1)
    np.testing.assert_array_equal(units_in(tmp_path / "m.joblib")["fc.weight"], expected)


def test_a_packed_pickle_that_is_cut_or_grows_is_refused(tmp_path):
    path = tmp_path / "m.joblib"
    joblib.dump({"fc.weight": normal(40, 20)}, path, compress=3)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(InputError, match=r"m\.joblib cannot be read as an archive: it is truncated"):
        open_model_file(path)
    path.write_bytes(zlib.compress(b"\x80\x04" + bytes(2**27), 9))
    with pytest.raises(InputError, match="grows beyond"):
        open_model_file(path)
    path.write_bytes(b"x\x9c no pickle")
    with pytest.raises(InputError, match="opcode b'x' unknown"):
        open_model_file(path)


@pytest.mark.parametrize("hidden", [(12, 7), (5, 5)])
@pytest.mark.parametrize("compress", [0, 3])
def test_units_of_a_network_of_scikit_learn_are_the_columns_of_its_weights(tmp_path, hidden, compress):
    x = STREAM.normal(size=(60, 5))
    network = MLPClassifier(hidden, max_iter=3, early_stopping=True)
    with pytest.warns(match="Stochastic Optimizer"):
        network.fit(x, (x[:, 0] > 0) + (x[:, 1] > 0))
    joblib.dump({"steps": [("net", network)]}, tmp_path / "m.joblib", compress=compress)
    found = units_in(tmp_path / "m.joblib")
    assert len(found) == 3
    for k, (weights, biases) in enumerate(zip(network.coefs_, network.intercepts_, strict=True)):
        own = next(value for name, value in found.items() if name.endswith(f"coefs_.{k}"))
        np.testing.assert_array_equal(own, np.concatenate([weights.T, biases[:, None]], axis=1))
    kinds = [own.kind for own in open_model_file(tmp_path / "m.joblib").units() if not own.reason]
    assert kinds == ["neuron", "neuron", "output"]


def saved(folder, kind, arrays):
    """A list of arrays as programs save it."""
    path = folder / f"m.{kind}"
    if kind == "npz":
        np.savez(path, *arrays)
    elif kind == "npy":
        np.save(path, np.array(arrays, dtype=object), allow_pickle=True)
    else:
        path.write_bytes(pickle.dumps(arrays))
    return path


@pytest.mark.parametrize("kind", ["npz", "npy", "pkl"])
def test_units_of_listed_weights_are_told_by_the_biases_behind_them(tmp_path, kind):
    conv, square, dense, last = normal(3, 3, 2, 6), normal(6, 6), normal(6, 11), normal(11, 4)
    vectors = [normal(size) for size in (6, 6, 11, 4)]
    of_keras = [array for pair in zip((conv, square, dense, last), vectors, strict=True) for array in pair]
    found = list(units_in(saved(tmp_path, kind, of_keras)).values())
    for own, expected in zip(found, (conv.transpose(3, 2, 0, 1), square.T, dense.T, last.T), strict=True):
        np.testing.assert_array_equal(own, expected.reshape(len(expected), -1))
    of_pytorch = [square, vectors[0], dense.T, vectors[2], last.T, vectors[3]]
    found = list(units_in(saved(tmp_path, kind, of_pytorch)).values())
    for own, expected in zip(found, (square, dense.T, last.T), strict=True):
        np.testing.assert_array_equal(own, expected)


def test_archives_in_archives_are_opened(tmp_path):
    content = io.BytesIO()
    np.savez(content, weight=(weights := normal(6, 5)))
    tarred, zipped = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tarred, mode="w") as archive:
        about = tarfile.TarInfo("data/m.npz")
        about.size = len(content.getvalue())
        archive.addfile(about, io.BytesIO(content.getvalue()))
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("x/m.tar", tarred.getvalue())
        archive.writestr("notes.txt", "notes")
    files = {"a.zip.gz": gzip.compress(zipped.getvalue()), "b.gz": gzip.compress(gzip.compress(content.getvalue()))}
    for name, packed in files.items():
        (tmp_path / name).write_bytes(packed)
    for path in ("a.zip.gz", "a.zip.gz/x/m.tar", "b.gz"):
        np.testing.assert_array_equal(units_in(tmp_path / path)["weight"], weights)
    assert measure_path(tmp_path / "a.zip.gz").units[0].weights().size
    with pytest.raises(InputError, match=r"a\.zip\.gz holds no file gone; its models: x/m\.tar"):
        open_model_file(tmp_path / "a.zip.gz" / "gone")
    deep = content.getvalue()
    for _ in range(6):
        deep = gzip.compress(deep)
    (tmp_path / "deep.gz").write_bytes(deep)
    with pytest.raises(InputError, match=r"deep\.gz holds more than 4 archives in each other"):
        open_model_file(tmp_path / "deep.gz")
    (tmp_path / "no.gz").write_bytes(gzip.compress(b"words"))
    with pytest.raises(InputError) as refused:
        open_model_file(tmp_path / "no.gz" / "member")
    assert "\n" not in str(refused.value)
