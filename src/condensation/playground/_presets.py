"""Presets of the page: the papers' examples, and targets."""

from typing import Any

from ..activations import label
from ..data import Synthetic
from ..experiment import Experiment
from ..networks import Dense
from ..optimizers import GD, Adam, GradientFlow, NormalisedGD, SignGD
from ._settings import Settings

KINDS = {Adam: "adam", GD: "gd", NormalisedGD: "normalised_gd", SignGD: "sign_gd", GradientFlow: "flow"}


def settings_of(experiment: Experiment) -> Settings:
    """The settings of an experiment with a dense network on a sum of waves or hinges, as in the FC paper."""
    network, data, optimizer, init = experiment.network, experiment.data, experiment.optimizer, experiment.init
    assert isinstance(network, Dense)
    assert isinstance(data, Synthetic)
    hidden, *_, output = init.laws(network)
    return Settings(
        formula=formula_of(data),
        inputs=data.dim,
        n=data.n,
        low=data.low,
        high=data.high,
        spacing=data.spacing,
        layers=tuple(map(str, network.activations)),
        width=network.hidden[0],
        residual=network.residual,
        std_w=hidden.std_of(network.layers[0], network.hidden[0]),
        std_a=output.std_of(network.layers[-1], network.hidden[-1]),
        optimizer=KINDS[type(optimizer)],
        rate=optimizer.time_step if isinstance(optimizer, GradientFlow) else optimizer.learning_rate,
        eps=optimizer.eps if isinstance(optimizer, Adam) else 1e-8,
    )


def formula_of(data: Synthetic) -> str:
    """The formula of a sum of waves or hinges.

    >>> from condensation import two_waves
    >>> formula_of(two_waves())
    'sin(3*x) + 0.5*sin(6*x)'
    """
    parts = []
    for amplitude, frequency, phase in data.terms:
        inner = f"{frequency:g}*x" if frequency != 1 else "x"
        inner += f" {'+' if phase > 0 else '-'} {abs(phase):g}" if phase else ""
        parts.append(
            f"{'' if amplitude == 1 else '-' if amplitude == -1 else f'{amplitude:g}*'}{data.function}({inner})"
        )
    return " + ".join(parts).replace("+ -", "- ")


def figures() -> list[dict[str, Any]]:
    """The papers' examples: name, title, description and settings."""
    from ..papers.fc.experiments import FIG5_ACTIVATIONS, LINES, fig3, low_frequency, one_input, six_layers

    rows: list[tuple[str, str, str, Settings]] = []
    for name, count in LINES.items():
        about = f"A 5-50-1 network with {label(name)}; the paper shows {count} line{'s' * (count > 1)}."
        rows.append((f"fc-fig3-{name}", f"FC Fig. 3, {label(name)}", about, settings_of(fig3(name))))
    six = "Six layers, each hidden layer with its own activation"
    with_residuals, without = (settings_of(six_layers(residual)) for residual in (True, False))
    rows.append(("fc-fig4", "FC Fig. 4, six layers", f"{six}, with residual connections.", with_residuals))
    rows.append(("fc-a5", "FC App. A.5, no residuals", f"{six}, without residual connections.", without))
    for name in FIG5_ACTIVATIONS:
        about = f"One input, so that weight and bias span the plane; {label(name)} has p = {LINES[name]}."
        rows.append((f"fc-fig6-{name}", f"FC Figs. 5 and 6, {label(name)}", about, settings_of(one_input(name))))
    for name in LINES:
        about = f"Fig. 3 with a target of lower frequency, {label(name)}."
        rows.append((f"fc-a7-{name}", f"FC App. A.7, {label(name)}", about, settings_of(low_frequency(name))))
    rows += _cnn_figures()
    return [
        {"name": name, "title": title, "about": about, "settings": settings.to_text()}
        for name, title, about, settings in rows
    ]


def _cnn_figures() -> list[tuple[str, str, str, Settings]]:
    """The CNN paper's examples on digits. The spectral gap is small there, so the initial weights are very small."""
    where = "on scikit-learn's digits instead of CIFAR-10, without a dense layer"
    descent = Settings(
        data="digits", n=200, layers=("tanh",), width=32, std_w=1e-10, std_a=1e-10, optimizer="gd", rate=0.2
    )
    about = (
        f"One convolution layer of 32 kernels by gradient descent, {where}. Kernels turn to the leading singular "
        "vector of Z. Its spectral gap is small on digits, so the initial weights have to be very small."
    )
    adam = descent.replace(std_w=1e-6, std_a=1e-6, optimizer="adam", rate=1e-4, eps=1e-20)
    deep = adam.replace(layers=("tanh",) * 3, width=16, std_w=1e-3, std_a=1e-3, eps=1e-30)
    rows = [
        ("cnn-fig2", "CNN Fig. 2, one layer", about, descent),
        ("cnn-fig3", "CNN Fig. 3, three layers", f"Three convolution layers by Adam, {where}.", deep),
    ]
    for name in ("relu", "sigmoid", "tanh"):
        about = f"One convolution layer with {name} by Adam, {where}."
        rows.append((f"cnn-fig4-{name}", f"CNN Fig. 4, {name}", about, adam.replace(layers=(name,))))
    return rows


def targets() -> list[dict[str, Any]]:
    """Targets: name, title, and the settings that they change."""
    line = {"data": "formula", "inputs": "1", "n": "40", "spacing": "even", "turn": "0"}
    plane = {"data": "formula", "inputs": "2", "n": "144", "spacing": "random", "turn": "0"}
    hinges = "-relu(x) + relu(2*x + 0.6) - relu(1.5*x - 0.6) + relu(0.5*x - 0.4)"
    rows = [
        ("two-waves", "two waves (FC Fig. 5)", line, "sin(3*x) + sin(6*x)/2", "-1", "1.5"),
        ("hinges", "four hinges", line, hinges, "-1.5", "1.5"),
        ("line", "a straight line", line, "x", "-1", "1"),
        ("parabola", "a parabola", line, "x**2 - 0.3", "-1", "1"),
        ("cubic", "a cubic", line, "x**3 - 0.5*x", "-1.2", "1.2"),
        ("step", "a step", line, "sign(x)", "-1", "1"),
        ("product", "x1 times x2", plane, "x1*x2", "-1", "1"),
        ("ring", "a ring", plane, "2*exp(-8*(x1**2 + x2**2 - 0.5)**2) - 1", "-1", "1"),
        ("monkey", "a monkey saddle", plane, "x1**3 - 3*x1*x2**2", "-1", "1"),
        ("ridge", "a ridge", plane, "sin(3*x1 + 1.5*x2)", "-1", "1"),
    ]
    return [
        {"name": name, "title": title, "settings": base | {"formula": formula, "low": low, "high": high}}
        for name, title, base, formula, low, high in rows
    ]
