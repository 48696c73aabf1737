"""What the reduction is compared with, written from the papers' formulas; and Torch-Pruning itself.

All are one-shot, leave the same numbers of units in the same layers, and change the given network only in a copy.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial

import numpy as np
import torch
from chains import Change, Link, changed, indicator, links, units
from torch import Tensor, nn
from torch.nn import functional as F

Counts = Mapping[str, int]


def _effective(network: nn.Module, link: Link) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows and shift of what a link's units see before the activation, norm included; and its scale and factor."""
    maker = network.get_submodule(link.makes)
    assert isinstance(maker, nn.Conv2d | nn.Linear)
    weight = maker.weight.detach().flatten(1)
    bias = weight.new_zeros(len(weight)) if maker.bias is None else maker.bias.detach()
    if not link.norm:
        return weight, bias, weight.new_ones(len(weight)), weight.new_ones(len(weight))
    norm = network.get_submodule(link.norm)
    assert isinstance(norm, nn.BatchNorm2d) and norm.running_mean is not None and norm.running_var is not None
    factor = norm.weight.detach() / (norm.running_var + norm.eps).sqrt()
    shift = norm.bias.detach() + factor * (bias - norm.running_mean)
    return weight * factor[:, None], shift, norm.weight.detach(), factor


def largest(network: nn.Module, link: Link, count: int, p: int = 1) -> Tensor:
    """The units whose weights (with their bias where no norm follows) have the largest norm."""
    maker = network.get_submodule(link.makes)
    assert isinstance(maker, nn.Conv2d | nn.Linear)
    weight = maker.weight.detach().flatten(1)
    if maker.bias is not None and not link.norm:
        weight = torch.cat([weight, maker.bias.detach()[:, None]], 1)
    return weight.norm(p, dim=1).argsort(descending=True, stable=True)[:count].sort().values


def _kept(chosen: Tensor, total: int) -> Tensor:
    return F.one_hot(chosen, total).float()


def prune(network: nn.Module, chain: list[Link], counts: Counts) -> nn.Module:
    """Pruning by the l1 norm of the units' weights."""
    changes = {}
    for link in chain:
        rows = _kept(largest(network, link, counts[link.makes]), units(network, link))
        changes[link] = Change(rows, rows.T)
    return changed(network, changes)


def neuron_merging(
    network: nn.Module, chain: list[Link], counts: Counts, threshold: float = 0.45, share: float = 0.85
) -> nn.Module:
    """Neuron merging (Kim et al. 2020): what reads a pruned unit reads the most similar kept one instead.

    Kept are the units of largest l1 norm. A pruned unit w_i is taken as s w_j, s = |w_i| / |w_j|, of the kept j of
    largest cosine, or is lost where that is below the threshold. Without norm the bias belongs to w. With batch norm
    the unit sees c z_j + r, c = s f_i / f_j, f = gamma / sigma, and j has the least share (1 - cos) +
    (1 - share) |r| / c, the latter scaled to [0, 1] over the kept units. The paper takes a threshold of .45 for LeNet,
    and .1 with share .85 for CIFAR-10.
    """
    changes = {}
    for link in chain:
        total = units(network, link)
        chosen = largest(network, link, counts[link.makes])
        rows = _kept(chosen, total)
        weight, shift, _, factor = _effective(network, link)
        bare = weight / factor[:, None] if link.norm else torch.cat([weight, shift[:, None]], 1)
        norms = bare.norm(dim=1).clamp_min(1e-12)
        cosine = (bare @ bare[chosen].T) / norms[:, None] / norms[chosen]
        ratio = norms[:, None] / norms[chosen]
        score = 1 - cosine
        if link.norm:
            ratio = ratio * factor[:, None] / factor[chosen]
            rest = (shift[:, None] - ratio * shift[chosen]).abs() / ratio.abs().clamp_min(1e-12)
            low, high = rest.amin(1, keepdim=True), rest.amax(1, keepdim=True)
            score = share * score + (1 - share) * (rest - low) / (high - low).clamp_min(1e-12)
            score = torch.where(ratio > 0, score, torch.inf)  # relu(-z) is not -relu(z)
        nearest = score.argmin(1)
        which = torch.arange(total, device=weight.device)
        taken = (cosine[which, nearest] >= threshold) & (ratio[which, nearest] > 0)
        combine = weight.new_zeros(total, len(chosen))
        combine[which, nearest] = torch.where(taken, ratio[which, nearest], 0.0)
        combine[chosen] = torch.eye(len(chosen), device=weight.device)
        changes[link] = Change(rows, combine)
    return changed(network, changes)


def folding(network: nn.Module, chain: list[Link], counts: Counts) -> nn.Module:
    """Folding (Wang et al. 2025): units are clustered by k-means, their mean takes the place of each cluster.

    Clustered are the weights and biases that a unit sees its input through, batch norm included; readers add up the
    columns of a cluster. Variances that averaging lowers are repaired by the recalibration that all methods get.
    """
    from sklearn.cluster import KMeans

    changes = {}
    for link in chain:
        count = counts[link.makes]
        weight, shift, scale, factor = _effective(network, link)
        points = torch.cat([weight, shift[:, None]], 1).cpu().numpy()
        labels = KMeans(count, n_init=3, random_state=0).fit_predict(points)  # pyright: ignore[reportArgumentType]
        labels = np.unique(labels, return_inverse=True)[1]
        combine = indicator(labels, int(labels.max()) + 1).to(weight.device)
        means = combine.T / combine.sum(0)[:, None]
        if not link.norm:
            changes[link] = Change(means, combine)
            continue
        new = means @ scale
        new = torch.where(new.abs() < 1e-3, torch.where(new < 0, -1e-3, 1e-3), new)
        changes[link] = Change(means * factor / new[:, None], combine, new)
    return changed(network, changes)


def prune_least_squares(
    network: nn.Module, chain: list[Link], counts: Counts, x: Tensor, ridge: float = 1e-4
) -> nn.Module:
    """Pruning by the l1 norm, and readers fitted by least squares to what they computed (He et al. 2017).

    Front to back, on the pruned network's own features; whole kernels are fitted, at up to 16 positions of each image.
    """
    small = prune(network, chain, counts)
    batches = x.split(250)
    given = [_passing(network, [link.reads for link in chain], batch) for batch in batches]
    for link in chain:
        reader = small.get_submodule(link.reads)
        assert isinstance(reader, nn.Conv2d | nn.Linear)
        squares = products = x.new_zeros(())
        for batch, known in zip(batches, given, strict=True):
            seen = _passing(small, [link.reads], batch)[link.reads][0]
            squares, products = squares + seen.T @ seen, products + seen.T @ known[link.reads][1]
        if link.reads in counts:  # the reader's own units are pruned, too
            further = next(other for other in chain if other.makes == link.reads)
            products = products[:, largest(network, further, counts[link.reads])]
        squares, products = squares.double(), products.double()
        added = ridge * squares.diagonal().mean() * torch.eye(len(squares), device=x.device)
        solved = torch.linalg.solve(squares + added, products)
        reader.weight.data = solved[:-1].T.reshape(reader.weight.shape).float().contiguous()
        if reader.bias is not None:  # without one a batch norm follows, whose mean is recalibrated
            reader.bias.data = solved[-1].float()
    return small


def _passing(network: nn.Module, names: list[str], x: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """What layers get (with a one behind) and give, of convolutions at up to 16 positions of each image."""
    kept: dict[str, tuple[Tensor, Tensor]] = {}

    class Reached(Exception):
        pass

    def keep(name: str, layer: nn.Module, args: tuple[Tensor, ...], out: Tensor) -> None:
        seen = args[0]
        if isinstance(layer, nn.Conv2d):
            stream = torch.Generator().manual_seed(0)
            places = torch.randperm(out[0, 0].numel(), generator=stream)[:16].to(out.device)
            height, width = (int(size) for size in layer.kernel_size)
            padded = F.pad(seen, [int(layer.padding[k]) for k in (1, 1, 0, 0)])
            rows = (places // out.shape[3])[:, None] * layer.stride[0] + torch.arange(height, device=out.device)
            columns = (places % out.shape[3])[:, None] * layer.stride[1] + torch.arange(width, device=out.device)
            seen = padded[:, :, rows[:, :, None], columns[:, None, :]]  # samples, channels, places, height, width
            seen = seen.movedim(2, 1).flatten(2).flatten(0, 1)
            out = out.flatten(2)[:, :, places].movedim(1, 2).flatten(0, 1)
        kept[name] = torch.cat([seen, seen.new_ones(len(seen), 1)], 1), out
        if len(kept) == len(names):
            raise Reached

    hooks = [network.get_submodule(name).register_forward_hook(partial(keep, name)) for name in names]
    try:
        with torch.no_grad():
            network(x)
    except Reached:
        pass
    finally:
        for hook in hooks:
            hook.remove()
    return kept


def torch_pruning(
    network: nn.Module, chain: list[Link], counts: Counts, criterion: str, x: Tensor, y: Tensor
) -> nn.Module:
    """Torch-Pruning by one of its criteria: ``l2`` (group magnitude), ``taylor`` (on x, y), or ``bn`` (batch norm)."""
    import torch_pruning as tp

    small = deepcopy(network).eval()
    small.zero_grad()
    if criterion == "taylor":
        for a, b in zip(x.split(250), y.split(250), strict=True):
            F.cross_entropy(small(a), b).backward()
    importance = {
        "l2": tp.importance.GroupMagnitudeImportance,
        "taylor": tp.importance.GroupTaylorImportance,
        "bn": tp.importance.BNScaleImportance,
    }[criterion]()
    graph = tp.DependencyGraph().build_dependency(small, example_inputs=x[:1])
    least: dict[str, list[int]] = {}
    for link in chain:
        maker = small.get_submodule(link.makes)
        group = graph.get_pruning_group(maker, _pruner(tp, maker), idxs=list(range(units(small, link))))
        score = importance(group)
        least[link.makes] = score.argsort(stable=True)[: len(score) - counts[link.makes]].tolist()
    for link in chain:
        maker = small.get_submodule(link.makes)
        graph.get_pruning_group(maker, _pruner(tp, maker), idxs=least[link.makes]).prune()
    small.zero_grad()
    return small


def _pruner(tp: object, maker: nn.Module) -> Callable[..., nn.Module]:
    kind = "conv" if isinstance(maker, nn.Conv2d) else "linear"
    return getattr(tp, f"prune_{kind}_out_channels")


RIVALS = (
    "l1 pruning",
    "l1 pruning, least squares",
    "neuron merging",
    "folding",
    "Torch-Pruning, l2",
    "Torch-Pruning, Taylor",
    "Torch-Pruning, BN scale",
)


def make_rival(rival: str, name: str, network: nn.Module, counts: Counts, x: Tensor, y: Tensor) -> nn.Module:
    """The network of a rival."""
    chain = links(name, network)
    if rival.startswith("Torch-Pruning"):
        return torch_pruning(network, chain, counts, rival.split()[1].lower(), x, y)
    if rival == "l1 pruning, least squares":
        return prune_least_squares(network, chain, counts, x)
    if rival == "neuron merging":
        return neuron_merging(network, chain, counts, 0.45 if name in ("lenet", "cnn") else 0.1)
    return {"l1 pruning": prune, "folding": folding}[rival](network, chain, counts)
