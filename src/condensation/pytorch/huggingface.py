"""Watching a training of Hugging Face's Trainer: ``Trainer(..., callbacks=[WatchCallback("runs/mine")])``."""

from pathlib import Path
from typing import Any, Unpack

from torch import nn

try:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "condensation.pytorch.huggingface needs Transformers: pip install 'transformers[torch]'"
    ) from error

from ..runs import WatchedRow
from ._options import Options, check_options
from ._watch import Watcher


class WatchCallback(TrainerCallback):
    """Watches the model that a trainer trains.

    Steps are the trainer's, gradient accumulation counted. The loss of a measured step is the one last logged by then,
    a mean over ``logging_steps``; a trainer tells callbacks no other. A training that goes on from a checkpoint goes on
    with the run in the folder; without a folder it begins anew at the checkpoint.

    Args:
        out: a folder for this run.
        options: those of ``watch``; ``to`` names loggers, as the trainer's own are out of a callback's reach.
    """

    def __init__(self, out: str | Path | None = None, **options: Unpack[Options]) -> None:
        check_options(options)
        self.out, self.options = out, options
        self.watcher: Watcher | None = None
        self._loss: float | None = None

    @property
    def rows(self) -> list[WatchedRow]:
        """One for each layer and measured step; none on processes other than the first."""
        return [] if self.watcher is None else self.watcher.rows

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Begin with the weights as they are, of a checkpoint where one was loaded."""
        model: nn.Module | None = kwargs.get("model")
        if model is None or not state.is_world_process_zero:
            return
        if self.watcher is not None:
            self.watcher.close(measure=False)  # of a training that ended in an error, which callbacks are not told
        done = state.global_step
        resume = self.options.get("resume", False) or done > 0
        overwrite = self.options.get("overwrite", False) and not resume
        options: Options = {**self.options, "resume": resume, "overwrite": overwrite}
        self._loss = None
        self.watcher = Watcher(model, self.out, first=done, **options)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Tell a step."""
        if self.watcher is not None:
            self.watcher.step(self._loss, state.global_step)

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Take the loss, also for the step that was just told."""
        logs: dict[str, Any] | None = kwargs.get("logs")
        if self.watcher is not None and logs and "loss" in logs:
            self._loss = float(logs["loss"])
            self.watcher.tell(self._loss)

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Measure the last step."""
        if self.watcher is not None:
            self.watcher.close()
