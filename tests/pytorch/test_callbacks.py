"""The callbacks in the real trainers of Lightning and Hugging Face."""

import importlib
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

os.environ["HF_HUB_OFFLINE"] = "1"
lightning = pytest.importorskip("lightning.pytorch")
transformers = pytest.importorskip("transformers")

from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402

from condensation import Every, InputError, load_run  # noqa: E402
from condensation.pytorch import huggingface  # noqa: E402
from condensation.pytorch.lightning import WatchCallback  # noqa: E402

pytestmark = [pytest.mark.pytorch, pytest.mark.filterwarnings("ignore")]  # the trainers' own

X = torch.linspace(-2, 2, 480).reshape(96, 5).sin()
Y = X.sum(1, keepdim=True).cos()


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 30), nn.Tanh(), nn.Dropout(0.2), nn.Linear(30, 1))

    def training_step(self, batch, _):
        return (self.net(batch[0]) - batch[1]).square().mean()

    def validation_step(self, batch, _):
        self.log("checked", (self.net(batch[0]) - batch[1]).square().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-2)


def fit(folder, callbacks, epochs=3, ckpt=None, logger=False):
    """Six optimizer steps an epoch: twelve batches, two of them a step."""
    lightning.seed_everything(3, verbose=False)
    module = Module()
    data = DataLoader(TensorDataset(X, Y), batch_size=8)
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accumulate_grad_batches=2,
        accelerator="cpu",
        callbacks=callbacks,
        logger=logger,
        default_root_dir=folder,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, data, data, ckpt_path=ckpt)
    return trainer, module


def comparable(rows):
    return [json.dumps(asdict(row)) for row in rows]


def test_lightning_steps_losses_and_weights(tmp_path):
    callback = WatchCallback(tmp_path / "run", schedule=Every(4), keep=["net.0.weight"])
    _, watched = fit(tmp_path, [callback])
    _, plain = fit(tmp_path, [])
    for ours, theirs in zip(watched.parameters(), plain.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    steps, change = callback.watcher.history("net.0.weight", "change")
    assert steps.tolist() == [0, 4, 8, 12, 16, 18]
    assert change[0] == 0
    assert (change[1:] > 0).all()
    found = load_run(tmp_path / "run")
    assert np.isnan(found.loss[0, 0])
    assert ((found.loss[0, 1:] > 0) & (found.loss[0, 1:] < 10)).all()
    weights = np.concatenate([p.detach().numpy().reshape(30, -1) for p in list(watched.parameters())[:2]], axis=1)
    assert np.array_equal(found.weights("net.0.weight", 18, 0), weights)


def test_lightning_tells_the_loss_of_the_user(tmp_path):
    class Eight(Module):
        def training_step(self, batch, _):
            return 0 * self.net(batch[0]).mean() + 8.0

    callback = WatchCallback(schedule=Every(1))
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu", "logger": False}
    trainer = lightning.Trainer(
        max_steps=3, accumulate_grad_batches=4, callbacks=[callback], default_root_dir=tmp_path, **quiet
    )
    trainer.fit(Eight(), DataLoader(TensorDataset(X, Y), batch_size=8))
    assert [row.loss for row in callback.rows if row.layer == "net.0.weight"][1:] == [8.0, 8.0, 8.0]


@pytest.mark.parametrize("folder", [True, False])
def test_lightning_goes_on_from_a_checkpoint(tmp_path, folder):
    out = lambda name: tmp_path / name if folder else None  # noqa: E731
    whole = WatchCallback(out("whole"), schedule=Every(4))
    trainer, _ = fit(tmp_path, [whole], epochs=2)
    trainer.save_checkpoint(tmp_path / "other.ckpt")
    first = WatchCallback(out("part"), schedule=Every(4))
    trainer, _ = fit(tmp_path, [first], epochs=1)  # ends at step 6, which is measured only as the last
    trainer.save_checkpoint(tmp_path / "one.ckpt")
    second = WatchCallback(out("part"), schedule=Every(4))
    fit(tmp_path, [second], epochs=2, ckpt=tmp_path / "one.ckpt")
    steps = [row.step for row in second.rows if row.layer == "net.0.weight"]
    assert steps == [row.step for row in whole.rows if row.layer == "net.0.weight"] == [0, 4, 8, 12]
    before = [row for row in whole.rows if row.step <= 4]
    assert comparable(second.rows[: len(before)]) == comparable(before)
    change = second.watcher.history("net.0.weight", "change")[1]
    assert (change[2:] > change[1]).all() if folder else np.isnan(change[2:]).all()
    if folder:
        with pytest.raises(InputError, match="already holds a watched run of Module"):
            fit(tmp_path, [WatchCallback(out("part"), schedule=Every(4))], epochs=1)


def test_lightning_loggers_are_told(tmp_path):
    callback = WatchCallback(schedule=Every(6))
    loggers = [TensorBoardLogger(tmp_path), CSVLogger(tmp_path, "csv")]
    trainer, _ = fit(tmp_path, [callback], logger=loggers)
    events = EventAccumulator(trainer.loggers[0].log_dir).Reload()
    steps, values = callback.watcher.history("net.0.weight", "k_eff")
    scalars = events.Scalars("condensation/net.0.weight/k_eff")
    assert [event.step for event in scalars] == steps.tolist() == [0, 6, 12, 18]
    np.testing.assert_allclose([event.value for event in scalars], values, rtol=1e-6)
    assert "condensation/net.0.weight/lines" in Path(trainer.loggers[1].log_dir, "metrics.csv").read_text()


def test_lightning_by_its_other_name_and_a_quick_look(tmp_path, monkeypatch):
    other = pytest.importorskip("pytorch_lightning")
    monkeypatch.setitem(sys.modules, "lightning.pytorch", None)
    monkeypatch.delitem(sys.modules, "condensation.pytorch.lightning")
    callback = importlib.import_module("condensation.pytorch.lightning").WatchCallback(tmp_path / "run")
    assert isinstance(callback, other.Callback)

    class Linear(other.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(5, 2)

        training_step, configure_optimizers = Module.training_step, Module.configure_optimizers

    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    trainer = other.Trainer(fast_dev_run=3, callbacks=[callback], default_root_dir=tmp_path, **quiet)
    trainer.fit(Linear(), DataLoader(TensorDataset(X, Y), batch_size=8))
    assert [row.step for row in callback.rows] == [0, 1, 3]
    assert not (tmp_path / "run").exists()


def test_options_are_checked_before_there_is_a_model():
    for make in (WatchCallback, huggingface.WatchCallback):
        with pytest.raises(InputError, match="unknown option of watch 'shedule'; did you mean 'schedule'"):
            make(shedule=Every(3))
        with pytest.raises(InputError, match="budget is a share of the time between 0 and 1, not 2"):
            make(budget=2)


def gpt(folder, callbacks, steps=12, resume=None):
    transformers.set_seed(0)
    config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=16, n_positions=16, vocab_size=23, n_inner=32)
    model = transformers.GPT2LMHeadModel(config)
    tokens = torch.arange(40 * 8).reshape(40, 8) % 23
    data = [{"input_ids": row, "labels": row} for row in tokens]
    arguments = transformers.TrainingArguments(
        folder,
        max_steps=steps,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        save_steps=6,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=0,
        lr_scheduler_type="constant",
        dataloader_pin_memory=False,
    )
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=data, callbacks=callbacks)
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train(resume_from_checkpoint=resume)
    return trainer, model


def test_hugging_face_gpt2(tmp_path):
    told = []
    callback = huggingface.WatchCallback(
        tmp_path / "run", schedule=Every(4), heads=True, to=lambda numbers, step: told.append((step, numbers))
    )
    trainer, watched = gpt(tmp_path / "a", [callback])
    _, plain = gpt(tmp_path / "b", [])
    for ours, theirs in zip(watched.parameters(), plain.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    found = load_run(tmp_path / "run")
    assert found.recorded.tolist() == [0, 4, 8, 12]
    assert [step for step, _ in told] == [0, 4, 8, 12]
    logged = {entry["step"]: entry["loss"] for entry in trainer.state.log_history if "loss" in entry}
    assert found.loss[0, 1:].tolist() == [logged[4], logged[8], logged[12]]
    layers = [layer.name for layer in found.watched.layers]
    assert "transformer.h.0.attn.c_attn.weight[q, head 1]" in layers
    assert "transformer.h.1.mlp.c_fc.weight" in layers
    assert found.watched.model == "GPT2LMHeadModel"
    assert (
        told[-1][1]["condensation/transformer.wte.weight/change"]
        == found.curves["change/transformer.wte.weight"][0, -1]
    )


def test_hugging_face_goes_on_from_a_checkpoint(tmp_path):
    options = {"schedule": Every(4)}
    whole = huggingface.WatchCallback(tmp_path / "whole", **options)
    gpt(tmp_path / "a", [whole])
    gpt(tmp_path / "b", [huggingface.WatchCallback(tmp_path / "part", **options)], steps=7)
    part = huggingface.WatchCallback(tmp_path / "part", **options)
    gpt(tmp_path / "b", [part], resume=tmp_path / "b" / "checkpoint-6")
    assert comparable(part.rows) == comparable(whole.rows)
    without = huggingface.WatchCallback(**options)
    gpt(tmp_path / "b", [without], resume=tmp_path / "b" / "checkpoint-6")
    assert sorted({row.step for row in without.rows}) == [6, 8, 12]


def test_hugging_face_trains_again_after_an_error(tmp_path):
    class Fails(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step == 3:
                raise ZeroDivisionError

    callback = huggingface.WatchCallback(tmp_path / "run", schedule=Every(2), resume=True)
    with pytest.raises(ZeroDivisionError):
        gpt(tmp_path / "a", [callback, Fails()])
    gpt(tmp_path / "a", [callback], steps=4)
    assert load_run(tmp_path / "run").recorded.tolist() == [0, 2, 4]
