"""Watching a training of Lightning: ``Trainer(callbacks=[WatchCallback("runs/mine")])``."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ..runs import WatchedRow
from ._options import Options, check_options
from ._watch import Watcher

if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer
else:
    try:
        from lightning.pytorch import Callback, LightningModule, Trainer
    except ModuleNotFoundError:
        try:
            from pytorch_lightning import Callback, LightningModule, Trainer
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "condensation.pytorch.lightning needs Lightning: pip install lightning"
            ) from error


class WatchCallback(Callback):
    """Watches the module that a trainer fits; its numbers go to the trainer's loggers, too.

    Steps are optimizer steps (``trainer.global_step``); the loss of a step is what ``training_step`` returned for its
    last batch. A fit that goes on from a checkpoint goes on with the run in the folder; without a folder the checkpoint
    brings the rows, but not the initial weights: the change is NaN from there on. A fast development run writes no
    files.

    Args:
        out: a folder for this run.
        options: those of ``watch``.
    """

    def __init__(self, out: str | Path | None = None, **options: Unpack[Options]) -> None:
        check_options(options)
        self.out, self.options = out, options
        self.watcher: Watcher | None = None
        self._restored: list[WatchedRow] = []

    @property
    def state_key(self) -> str:
        """Two callbacks that watch into two folders are told apart."""
        return self._generate_state_key(out=str(self.out))

    @property
    def rows(self) -> list[WatchedRow]:
        """One for each layer and measured step; none on processes other than the first."""
        return self._restored if self.watcher is None else self.watcher.rows

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin with the weights as they are after the sanity check, or after a checkpoint was loaded."""
        if not trainer.is_global_zero:
            return
        done, to = trainer.global_step, self.options.get("to", ())
        loggers = [*(to if isinstance(to, list | tuple) else (to,)), *trainer.loggers]
        resume = self.options.get("resume", False) or done > 0
        overwrite = self.options.get("overwrite", False) and not resume
        options: Options = {**self.options, "to": loggers, "resume": resume, "overwrite": overwrite}
        out = None if getattr(trainer, "fast_dev_run", False) else self.out
        rows = self._restored if out is None and done > 0 else ()
        self.watcher = Watcher(pl_module, out, first=done, rows=rows, **options)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Tell a step, unless the batch only added to the gradient."""
        if self.watcher is not None and trainer.global_step > self.watcher.last:
            loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
            if loss is not None:
                loss = loss * trainer.accumulate_grad_batches  # the trainer has divided it by them
            self.watcher.step(loss, trainer.global_step)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Measure the last step."""
        if self.watcher is not None:
            self.watcher.close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Write what there is."""
        if self.watcher is not None:
            self.watcher.close(measure=isinstance(exception, KeyboardInterrupt))

    def state_dict(self) -> dict[str, Any]:
        """The rows, for a checkpoint."""
        return {"rows": [asdict(row) for row in self.rows]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The rows from a checkpoint."""
        self._restored = [WatchedRow(**row) for row in state_dict["rows"]]
