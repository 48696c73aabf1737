"""A small GPT-2 on a task of two steps: which of its matrices condense first?

From a small start by gradient descent and by Adam, and from an ordinary start. Of descent it is said that values and
feed-forward matrices condense first, and that queries and keys lose rank later: does that hold, and of Adam, too?

A sequence holds a key number and, after it, two of four *anchors*, each of which stands for something to add; the
answer is the key plus both. One pair of anchors in one order is never trained on: it tells whether the model adds.
"""

import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import GPT2Config, GPT2LMHeadModel

from condensation import Geometric
from condensation.drawing import look, save
from condensation.drawing._style import COLOURS, PAGE
from condensation.pytorch import Watcher, watch

ADDS = torch.tensor([0, 5, 1, -2, -8])  # what the anchors 1 to 4 stand for
HELD_OUT = (4, 3)
LENGTH, WORDS = 9, 130
SMALL, ORDINARY = 1.2, 0.5  # gamma: all matrices start with std width^-gamma
ADAM, DESCENT = 1e-3, 0.5  # learning rates; descent with momentum 0.9
WARMUP, BATCH = 100, 128
LOST = 0.8  # a matrix has begun to condense when its effective rank is at this share of the start's
KINDS = {
    "queries": "c_attn.weight[q]",
    "keys": "c_attn.weight[k]",
    "values": "c_attn.weight[v]",
    "attention output": "attn.c_proj.weight",
    "feed-forward in": "mlp.c_fc.weight",
    "feed-forward out": "mlp.c_proj.weight",
    "embedding": "wte.weight",
}


def sequences(n: int, stream: torch.Generator, held_out: bool = False) -> tuple[Tensor, Tensor]:
    """Sequences and their answers, of all pairs but the held-out one, or of that one only."""
    x = torch.randint(20, 100, (n, LENGTH), generator=stream)
    pairs = torch.cartesian_prod(torch.arange(1, 5), torch.arange(1, 5))
    pairs = pairs[(pairs == torch.tensor(HELD_OUT)).all(1) == held_out]
    rows, place = torch.arange(n), torch.randint(1, LENGTH - 1, (n,), generator=stream)
    first, second = pairs[torch.randint(len(pairs), (n,), generator=stream)].T
    x[rows, place], x[rows, place + 1] = first, second
    return x, x[rows, place - 1] + ADDS[first] + ADDS[second]


def gpt(gamma: float, width: int, layers: int, seed: int) -> GPT2LMHeadModel:
    """A GPT-2 without dropout whose matrices all start with std width^-gamma."""
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=WORDS,
        n_positions=LENGTH,
        n_embd=width,
        n_layer=layers,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=None,
        eos_token_id=None,
        use_cache=False,
    )
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.normal_(std=width**-gamma)
    return model


def fit(model: GPT2LMHeadModel, adam: bool, steps: int, seed: int, watcher: Watcher) -> None:
    """An ordinary loop on the last word of each sequence, at a constant rate after the warm-up."""
    stream, parameters = torch.Generator().manual_seed(seed), list(model.parameters())
    descent = torch.optim.SGD(parameters, DESCENT, momentum=0.9)
    optimizer = torch.optim.Adam(parameters, ADAM) if adam else descent
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / WARMUP, total_iters=WARMUP)
    for _ in range(steps):
        x, y = sequences(BATCH, stream)
        loss = cross_entropy(model(x).logits[:, -1], y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        warmup.step()
        watcher.step(loss)


@torch.no_grad()
def accuracy(model: GPT2LMHeadModel, held_out: bool) -> float:
    """Share of right answers to 2000 new sequences."""
    x, y = sequences(2000, torch.Generator().manual_seed(10**6), held_out)
    return float((model(x).logits[:, -1].argmax(1) == y).double().mean())


def shares(watcher: Watcher, kind: str, quantity: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and k_eff or the effective rank of each layer's matrix of this kind as a share of that at the start."""
    layers = [row.layer for row in watcher.rows if row.step == 0 and row.layer.endswith(KINDS[kind])]
    steps = watcher.history(layers[0], quantity)[0]
    values = np.stack([watcher.history(layer, quantity)[1] for layer in layers])
    return steps, values / values[:, :1]


def tell(watcher: Watcher) -> None:
    """A row for each kind of matrix, in the order in which they begin to lose rank."""
    rows = []
    for kind in KINDS:
        steps, rank = shares(watcher, kind, "effective_rank")
        lost = [int(steps[np.argmax(ranks < LOST)]) if (ranks < LOST).any() else None for ranks in rank]
        lines = shares(watcher, kind, "k_eff")[1]
        rows.append((min((step for step in lost if step is not None), default=10**9), kind, lost, rank, lines))
    print(f"  {'shares of the start':19} {'rank below 0.8 at step':23} rank at the end   k_eff: least   at the end")
    for _, kind, lost, rank, lines in sorted(rows, key=lambda row: row[0]):
        when = ", ".join("never" if step is None else str(step) for step in lost)
        numbers = (" ".join(f"{v:.2f}" for v in values) for values in (rank[:, -1], lines.min(axis=1), lines[:, -1]))
        print("  {:19} {:23} {:17} {:14} {}".format(kind, when, *numbers))


def fresh(folder: Path) -> Path:
    """This folder, or where it is there already the first of folder-2, folder-3, ... that is not."""
    names = (folder if k == 1 else folder.with_name(f"{folder.name}-{k}") for k in count(1))
    return next(name for name in names if not name.exists())


def draw(watchers: Mapping[str, Watcher], file: Path) -> None:
    """Effective rank and k_eff of each kind of matrix against the step, the mean over layers."""
    with look():
        figure = Figure(figsize=(PAGE, 4.2), layout="constrained")
        grid = figure.subplots(2, len(watchers), sharex=True, sharey=True, squeeze=False)
        for column, (name, watcher) in enumerate(watchers.items()):
            for axes, quantity in zip(grid[:, column], ("effective_rank", "k_eff"), strict=True):
                for kind, colour in zip(KINDS, COLOURS, strict=True):
                    steps, values = shares(watcher, kind, quantity)
                    axes.plot(steps, values.mean(axis=0), color=colour, label=kind)
                axes.set(xscale="symlog", ylim=(0, 1.1), title=name if quantity == "effective_rank" else "")
            grid[1, column].set_xlabel("step")
        grid[0, 0].set_ylabel("effective rank, share of start")
        grid[1, 0].set_ylabel("$k_{eff}$, share of start")
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    save(figure, file)


def main(
    folder: str | Path = "gpt", *, seed: int = 0, steps: int = 1000, width: int = 64, layers: int = 2
) -> dict[str, Watcher]:
    """Train on the same sequences, watched, and draw.

    Args:
        folder: where the watched runs and the picture go; where it is there already, one beside it.
        seed: of starts and sequences.
        steps: of either optimizer.
        width: of the embedding, a multiple of 4.
        layers: of the model.
    """
    folder, began, watchers = fresh(Path(folder)), time.perf_counter(), {}
    runs = {
        "small start, descent": (SMALL, False),
        "small start, Adam": (SMALL, True),
        "ordinary start, Adam": (ORDINARY, True),
    }
    for kind, (gamma, adam) in runs.items():
        model = gpt(gamma, width, layers, seed)
        run = folder / kind.replace(",", "").replace(" ", "-")
        with watch(model, run, schedule=Geometric(20)) as watchers[kind]:
            fit(model, adam, steps, seed, watchers[kind])
        print(f"{kind} (gamma {gamma}): accuracy {accuracy(model, False):.3f}, ", end="")
        print(f"of the held-out pair {accuracy(model, True):.3f}")
        tell(watchers[kind])
    draw(watchers, folder / "gpt.png")
    print(f"{folder}/ holds the watched runs and gpt.png ({time.perf_counter() - began:.0f} s)")
    return watchers


if __name__ == "__main__":
    main()
