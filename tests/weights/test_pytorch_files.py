"""PyTorch's own files: the weights inside are found, code inside is never run; all formats give the same rows."""

import argparse
import json
import os
import pickle
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from condensation import InputError
from condensation._memory import VARIABLE
from condensation.pytorch import units
from condensation.weights import measure_listed, measure_path, open_model_file

pytestmark = pytest.mark.pytorch


@pytest.fixture(scope="module")
def gpt2():
    """A small GPT-2 with one layer on two lines and one with a common mean."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=61, n_positions=16))
    with torch.no_grad():
        lines = torch.randn(32, 2)[:, torch.randint(0, 2, (128,))] * torch.randn(128)
        model.transformer.h[1].mlp.c_fc.weight.copy_(lines)
        model.transformer.h[0].mlp.c_fc.weight.add_(0.04 * torch.randn(32, 1))
    return model


def by_layer(rows):
    """Measured rows as text, which NaN does not make different."""
    return {row.layer: repr(row) for row in rows if not row.reason}


def save_all(model, folder):
    """The model in every format, by the path to measure."""
    state = model.state_dict()
    paths = {name: folder / f"w.{name}" for name in ("pt", "pth", "bin", "safetensors")}
    for name in ("pt", "pth", "bin"):
        torch.save(state, paths[name])
    save_file({name: tensor.clone() for name, tensor in state.items()}, paths["safetensors"])
    for size in ("1GB", "20KB"):
        paths[f"folder, {size}"] = folder / size
        model.save_pretrained(folder / size, max_shard_size=size)
    assert len(list((folder / "20KB").glob("*.safetensors"))) > 1
    lightning = {
        "epoch": 1,
        "global_step": 20,
        "pytorch-lightning_version": "2.6.0",
        "state_dict": state,
        "loops": {"fit_loop": {"state_dict": {}}},
        "callbacks": {"best": torch.tensor(0.1)},
        "optimizer_states": [{"state": {0: {"exp_avg": torch.randn(9, 9)}}, "param_groups": [{"lr": 1e-3}]}],
        "lr_schedulers": [],
        "hyper_parameters": {"width": 32, "name": "a"},
    }
    paths["ckpt"] = folder / "w.ckpt"
    torch.save(lightning, paths["ckpt"])
    paths["wrapped"] = folder / "wrapped.pt"
    torch.save({"model": {f"module._orig_mod.{k}": v for k, v in state.items()}, "step": 3}, paths["wrapped"])
    paths["old"] = folder / "old.pt"
    torch.save(state, paths["old"], _use_new_zipfile_serialization=False)
    return paths


def test_all_formats_give_the_rows_of_the_model(gpt2, tmp_path):
    expected = by_layer(measure_listed(units(gpt2, heads=False)))
    assert len(expected) > 10
    for kind, path in save_all(gpt2, tmp_path).items():
        found = measure_path(path)
        assert by_layer(found.rows) == expected, kind
        assert found.rows[0].layer == "transformer.h.1.mlp.c_fc.weight"
        assert found.rows[0].lines == 2
        mean = next(row for row in found.rows if row.layer == "transformer.h.0.mlp.c_fc.weight")
        assert mean.reading.startswith("a common mean with ")
        assert ", else as chance: k_eff " in mean.reading
        told = {row.layer: row.reason for row in found.rows if row.reason}
        assert told.get("lm_head.weight", "tied: it is transformer.wte.weight") == "tied: it is transformer.wte.weight"
        assert ("lm_head.weight" in told) == path.is_file()
    assert open_model_file(tmp_path / "w.pt").parameters == sum(p.numel() for p in gpt2.parameters())


SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 61}
GROUPED = SMALL | {"num_key_value_heads": 2, "pad_token_id": 0}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "vocab_size": 61}
RESNET = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}


@pytest.mark.parametrize("heads", [False, True])
@pytest.mark.parametrize(
    ("name", "model", "options"),
    [
        ("Bert", "BertForMaskedLM", SMALL),
        ("Llama", "LlamaForCausalLM", GROUPED),
        ("Mixtral", "MixtralForCausalLM", GROUPED | {"num_local_experts": 3}),
        ("GPTNeoX", "GPTNeoXForCausalLM", SMALL),
        ("Phi3", "Phi3ForCausalLM", GROUPED),
        ("T5", "T5ForConditionalGeneration", T5),
        ("ResNet", "ResNetForImageClassification", RESNET),
    ],
)
def test_names_tell_what_the_modules_tell(tmp_path, name, model, options, heads):
    import transformers

    made = getattr(transformers, model)(getattr(transformers, f"{name}Config")(**options))
    torch.save(made.state_dict(), tmp_path / "m.pt")
    (tmp_path / "config.json").write_text(json.dumps(made.config.to_dict()))
    listed = open_model_file(tmp_path / "m.pt").units(heads=heads)
    told = {own.name: (own.kind, own.units, own.inputs) for own in listed if not own.reason}
    known = units(made, heads=heads)
    assert told == {own.name: (own.kind, own.units, own.inputs) for own in known if not own.reason}


def test_heads_are_told_by_the_configuration(gpt2, tmp_path):
    gpt2.save_pretrained(tmp_path)
    assert by_layer(measure_path(tmp_path, heads=True).rows) == by_layer(measure_listed(units(gpt2, heads=True)))


def test_a_real_lightning_checkpoint_is_read(tmp_path):
    import lightning

    class Small(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(8, 30), nn.Tanh(), nn.Linear(30, 2))

        def training_step(self, batch, _):
            return self.net(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 8)), batch_size=4)
    model = Small()
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[lightning.pytorch.callbacks.ModelCheckpoint(tmp_path, save_top_k=-1)],
    )
    with warnings.catch_warnings(action="ignore"):
        trainer.fit(model, data)
    found = measure_path(tmp_path)
    assert list(found.steps) == [2, 4, 6]
    assert by_layer(found.steps[6]).keys() == by_layer(measure_listed(units(model))).keys()
    assert 0 < found.history("net.0.weight")[6].change < 1
    alone = measure_path(tmp_path / "epoch=2-step=6.ckpt")
    assert by_layer(alone.rows) == by_layer(measure_listed(units(model)))


class Payload:
    """What an attacker would pickle."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("protocol", [2, 4])
def test_code_in_a_pickle_does_not_run(tmp_path, inside, protocol):
    target, path = tmp_path / "harm", tmp_path / "bad.pt"
    said = f"it names {os.mkdir.__module__}.mkdir, of which nothing was imported or called"
    if inside:
        torch.save({"fc.weight": torch.ones(3, 4), "x": Payload(target)}, path, pickle_protocol=protocol)
        found = open_model_file(path)
        assert (list(found.arrays), found.notes) == (["fc.weight"], (said,))
        np.testing.assert_array_equal(found.arrays["fc.weight"].read(), np.ones((3, 4)))
    else:
        path.write_bytes(pickle.dumps(Payload(target), protocol=protocol))
        with pytest.raises(InputError, match=rf"holds no tensors by name .*{said}: save model.state_dict.*safetensors"):
            open_model_file(path)
    assert not target.exists()
    pickle.loads(pickle.dumps(Payload(target)))
    assert target.exists()  # the payload does work where pickles are trusted


def test_the_command_line_refuses_code(tmp_path):
    torch.save(Payload(tmp_path / "harm"), tmp_path / "bad.pt")
    line = [sys.executable, "-m", "condensation", "measure", str(tmp_path / "bad.pt")]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("condensation: ")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "harm").exists()


def small_model():
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    return nn.Sequential(inner, nn.Flatten(), nn.Linear(8 * 6 * 6, 10), nn.Sequential(nn.Linear(10, 4))).eval()


@pytest.mark.parametrize("zipped", [True, False])
def test_whole_models_are_read_as_their_state_dicts(tmp_path, zipped):
    model = small_model()
    for inside in (model, {"epoch": 3, "model": model, "optimizer": torch.optim.Adam(model.parameters())}):
        torch.save(inside, tmp_path / "whole.pt", _use_new_zipfile_serialization=zipped)
        found = open_model_file(tmp_path / "whole.pt")
        state = model.state_dict()
        assert list(found.arrays) == list(state)
        for name, stored in found.arrays.items():
            np.testing.assert_array_equal(stored.read(), state[name].numpy())
        assert any("of which nothing was imported or called" in note for note in found.notes)
    assert by_layer(measure_path(tmp_path / "whole.pt").rows) == by_layer(measure_listed(units(model)))


@pytest.mark.parametrize("frozen", [False, True])
def test_programs_are_read_and_not_run(tmp_path, frozen):
    model = small_model()
    with warnings.catch_warnings(action="ignore"):
        program = torch.jit.script(model)
        program = torch.jit.freeze(program) if frozen else program
        torch.jit.save(program, str(tmp_path / "script.pt"))
    found = open_model_file(tmp_path / "script.pt")
    assert found.notes[-1] == "a TorchScript archive: its program is not run"
    matrices = {tuple(value.shape): value for value in model.state_dict().values() if value.ndim > 1}
    read = {stored.shape: stored.read() for stored in found.arrays.values() if len(stored.shape) > 1}
    assert read.keys() == matrices.keys()
    for shape, values in read.items():
        if len(shape) == 2 or not frozen:  # freezing folds the norm into the convolution
            np.testing.assert_array_equal(values, matrices[shape].numpy())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: b"", "is empty"),
        (lambda content: content[: len(content) // 2], "is truncated: its end is missing"),
        (lambda content: b"no pickle at all" * 9, "cannot be read as a PyTorch file"),
        (lambda content: b"hello", "cannot be read as a PyTorch file: it is broken, or of another kind"),
        (lambda content: content[:200] + b"\0" * 400 + content[600:], "cannot be read as a PyTorch file"),
    ],
)
def test_broken_files_are_refused_in_one_sentence(tmp_path, change, said):
    path = tmp_path / "m.ckpt"
    torch.save({"a": torch.ones(9, 9)}, path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError, match=said) as refused:
        open_model_file(path)
    assert "\n" not in str(refused.value)


def test_what_holds_no_tensors_is_refused(tmp_path):
    torch.save({"step": 3, "name": "a"}, tmp_path / "m.pt")
    with pytest.raises(InputError, match="holds no tensors by name but a dict"):
        open_model_file(tmp_path / "m.pt")
    torch.save(torch.randn(9, 4), tmp_path / "one.pt")
    assert list(open_model_file(tmp_path / "one.pt").arrays) == ["one"]


STATE = {
    f"{k}.{own}": torch.randn(9, 4) if own == "weight" else torch.randn(9) for k in "ab" for own in ("weight", "bias")
}
ONE = {"weight": torch.randn(9, 4)}
HISTORY = {f"loss{k}": torch.tensor(0.1) for k in range(50)}
OPTIMIZER = {"state": {0: {"exp_avg": torch.randn(9, 4)}}, "param_groups": [{"lr": 0.1}]}


def under(key, state=STATE):
    return [f"{key}.{name}" for name in state]


@pytest.mark.parametrize(
    ("content", "names", "notes"),
    [
        (STATE | {"step": 3}, list(STATE), ()),
        (
            {"model": STATE, "history": HISTORY, "optimizer": OPTIMIZER, "args": {"lr": 0.1}},
            list(STATE),
            ("the weights are those under model", "other tensors of the file are left out: history, optimizer"),
        ),
        (
            {"state_dict": ONE, "extra": STATE},
            list(ONE),
            ("the weights are those under state_dict", "other tensors of the file are left out: extra"),
        ),
        (
            {"model": STATE, "model_ema": STATE, "confusion": torch.ones(3, 3)},
            list(STATE),
            ("the weights are those under model", "other tensors of the file are left out: model_ema, confusion"),
        ),
        (
            {"encoder": STATE, "decoder": {"state_dict": ONE}, "opt": OPTIMIZER, "epoch": 1},
            [*under("encoder"), *under("decoder", ONE)],
            (
                "the weights are those under encoder, decoder.state_dict",
                "other tensors of the file are left out: opt",
            ),
        ),
        (
            {"net": {"G": STATE, "D": ONE}},
            [*under("G"), *under("D", ONE)],
            ("the weights are those under net.G, net.D",),
        ),
        ({"upscaler": STATE, "history": HISTORY}, list(STATE), None),
        ({"fc.weight": ONE["weight"], "history": HISTORY}, ["fc.weight"], None),
        ({"norm.weight": torch.ones(4)}, ["norm.weight"], ()),
    ],
)
def test_the_weights_of_a_file_are_found_and_the_rest_told(tmp_path, content, names, notes):
    torch.save(content, tmp_path / "m.pt")
    found = open_model_file(tmp_path / "m.pt")
    assert list(found.arrays) == names
    assert found.notes == notes or (notes is None and found.notes[-1].endswith("left out: history"))


def test_numbers_of_numpy_beside_the_weights_do_no_harm(tmp_path):
    beside = {"acc": np.float64(0.9), "epoch": np.int64(3), "type": np.dtype("float32"), "seen": np.arange(5)}
    torch.save({"model": STATE, "rng": ("MT19937", np.arange(9), 3)} | beside, tmp_path / "m.pt")
    found = open_model_file(tmp_path / "m.pt")
    assert list(found.arrays) == list(STATE)
    old = tmp_path / "old.pt"  # as NumPy 1 called it
    torch.save({"model": STATE} | beside, old, _use_new_zipfile_serialization=False)
    old.write_bytes(old.read_bytes().replace(b"numpy._core.", b"numpy.core."))
    assert list(open_model_file(old).arrays) == list(STATE)


def test_what_is_not_built_is_named_and_no_one_accused(tmp_path):
    torch.save({"model": STATE, "args": argparse.Namespace(lr=0.1)}, tmp_path / "m.pt")
    found = open_model_file(tmp_path / "m.pt")
    assert list(found.arrays) == list(STATE)
    assert found.notes[-1] == "it names argparse.Namespace, of which nothing was imported or called"
    torch.save({"optimizer": {"a": torch.ones(2, 2)}}, tmp_path / "o.pt")
    with pytest.raises(InputError, match=r"holds no tensors by name but a dict \(optimizer not being called"):
        open_model_file(tmp_path / "o.pt")


def test_a_watched_run_that_ends_in_nan_keeps_its_good_steps(tmp_path):
    from condensation.pytorch import watch
    from condensation.weights._report import report_page
    from condensation.weights._runs import measure_run

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 20), nn.Tanh(), nn.Linear(20, 2))
    with watch(model, tmp_path / "run", keep=("0.weight",)) as watcher:
        for step in range(4):
            with torch.no_grad():
                model[0].weight.add_(0.1)
                if step == 3:
                    for parameter in model.parameters():
                        parameter.fill_(torch.nan)
            watcher.step(0.5)
    found = measure_run(tmp_path / "run", every_step=True)
    good = [row.layer for row in found.rows if not row.reason]
    assert sorted(good) == ["0.weight", "2.weight"]
    assert found.reasons
    assert "Over training" in report_page(found)


def test_types_of_tensors(tmp_path):
    weights = torch.randn(20, 8)
    state = {
        f"{str(kind).removeprefix('torch.')}.weight": weights.to(kind)
        for kind in (torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.complex64)
    }
    state |= {"sparse.weight": weights.to_sparse(), "meta.weight": weights.to("meta"), "n": torch.tensor(3)}
    with warnings.catch_warnings(action="ignore"):
        state["q.weight"] = torch.quantize_per_tensor(weights, 0.05, 3, torch.qint8)
        state["rows.weight"] = torch.quantize_per_channel(
            weights, torch.full((20,), 0.05), torch.zeros(20), 0, torch.qint8
        )
        torch.save(state, tmp_path / "m.pt")
        expected = {name: state[name].dequantize() for name in ("q.weight", "rows.weight")}
    listed = {u.name: u for u in open_model_file(tmp_path / "m.pt").units()}
    for name in ("float64", "float16", "bfloat16", "float8_e4m3fn"):
        found = listed[f"{name}.weight"].weights()
        np.testing.assert_array_equal(found, state[f"{name}.weight"].to(torch.float64).numpy())
    for name, values in expected.items():
        np.testing.assert_array_equal(listed[name].weights(), values.numpy())
    assert "not floating-point" in listed["int64.weight"].reason
    assert "complex" in listed["complex64.weight"].reason
    assert "sparse" in listed["sparse.weight"].reason
    assert "meta" in listed["meta.weight"].reason


def test_a_quantised_model_is_dequantised(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 30), nn.Tanh())
    with warnings.catch_warnings(action="ignore"):
        small = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
        torch.save(small.state_dict(), tmp_path / "m.pt")
        expected = measure_listed(units(small))
    expected = [replace(row, quantised=not row.reason) for row in expected]  # a module's own are not told as such
    assert by_layer(measure_path(tmp_path / "m.pt").rows) == by_layer(expected)
    assert next(iter(by_layer(expected))) == "0.weight"


def test_tied_storages_are_told_and_equal_ones_are_not(tmp_path):
    shared = torch.randn(9, 4)
    torch.save({"a.weight": shared, "b.weight": shared, "c.weight": shared.clone()}, tmp_path / "m.pt")
    told = {row.layer: row.reason for row in measure_path(tmp_path / "m.pt").rows}
    assert told == {"a.weight": "", "b.weight": "tied: it is a.weight", "c.weight": ""}


def test_pickled_shards(gpt2, tmp_path):
    state = gpt2.state_dict()
    places = {name: f"pytorch_model-{k % 2}.bin" for k, name in enumerate(state)}
    for file in set(places.values()):
        torch.save({name: tensor for name, tensor in state.items() if places[name] == file}, tmp_path / file)
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    found = by_layer(measure_path(tmp_path).rows)
    assert found == by_layer(measure_listed(units(gpt2, heads=False)))


def test_bfloat16_of_pytorch_is_read_from_safetensors(tmp_path):
    weights = torch.randn(20, 8).bfloat16()
    save_file({"a.weight": weights, "b.weight": weights.to(torch.float8_e5m2)}, tmp_path / "m.safetensors")
    arrays = open_model_file(tmp_path / "m.safetensors").arrays
    np.testing.assert_array_equal(arrays["a.weight"].read(), weights.float().numpy())
    np.testing.assert_array_equal(arrays["b.weight"].read(), weights.to(torch.float8_e5m2).float().numpy())


def test_a_watched_run_is_measured_by_its_curves(tmp_path):
    from condensation.pytorch import watch
    from condensation.weights._report import report_page
    from condensation.weights._runs import measure_run

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 20), nn.Tanh(), nn.Linear(20, 2))
    optimizer, x = torch.optim.Adam(model.parameters(), 1e-2), torch.randn(16, 4)
    with watch(model, tmp_path / "run", keep=("0.weight",)) as watcher:
        for _ in range(30):
            optimizer.zero_grad()
            loss = (model(x) - x[:, :2]).square().mean()
            loss.backward()
            optimizer.step()
            watcher.step(loss.item())
    found = measure_run(tmp_path / "run", every_step=True)
    for row in watcher.rows:
        own = found.history(row.layer)[row.step]
        for name in ("lines", "orientations", "condensed", "units", "inputs", "reason"):
            assert getattr(own, name) == getattr(row, name)
        for name in ("cover", "k_eff", "effective_rank", "change"):
            assert getattr(own, name) == pytest.approx(getattr(row, name), nan_ok=True, rel=1e-6)
    assert len(measure_run(tmp_path / "run").steps) <= 12
    assert report_page(found).count("data:image/") == 3
    with pytest.raises(InputError, match="a threshold is given to watch"):
        measure_run(tmp_path / "run", threshold=0.9)


def test_files_are_mapped_and_pickles_are_read_only_where_they_fit_into_memory(tmp_path, monkeypatch):
    """Archives and old files have their values apart; in a plain pickle they are part of the program."""
    state = {"fc.weight": torch.zeros(500, 500)}
    for zipped in (True, False):
        torch.save(state, tmp_path / f"{zipped}.pt", _use_new_zipfile_serialization=zipped)
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps({"fc.weight": np.zeros((500, 500))}))
    monkeypatch.setenv(VARIABLE, "1")
    for zipped in (True, False):
        assert open_model_file(tmp_path / f"{zipped}.pt").parameters == 250_000
    with pytest.raises(InputError, match=r"reading .*plain\.pkl takes .* of memory"):
        open_model_file(tmp_path / "plain.pkl")
