"""What the fully connected paper states, figure by figure and in its text, each with the rule it is held against.

The rules were written down before the runs they judge. Thresholds that the paper does not give are ours.
"""

from ...activations import label
from .._claims import Rule
from .._legacy import Statement
from .experiments import (
    FIG2_EPOCHS,
    FIG3_EPOCH,
    FIG3_RATES,
    FIG4_EPOCHS,
    FIG4_LAYERS,
    FIG5_ACTIVATIONS,
    FIG5_EPOCH,
    FIG6_EPOCH,
    LINES,
)


def _words(count: int, one: str) -> str:
    return f"{('one', 'two', 'three')[count - 1]} {one}{'s' if count > 1 else ''}"


def _multiplicity(activation: str) -> str:
    return f"{label(activation)} (multiplicity {LINES[activation]})"  # as many lines as that is what the paper states


def _at_most_2p(figure: str, where: str, said: str, name: str, key: str) -> Statement:
    return Statement(
        f"{figure}-{key}-most",
        figure,
        f"{where}, Sec. 4.3",
        f"{said}: at most 2p = {2 * LINES[name]} orientations",
        "orientations at the same step",
        Rule("at most", 2 * LINES[name]),
    )


FIG1 = (
    Statement(
        "fc-fig1-line",
        "fc-fig1",
        "Fig. 1",
        "soon after training begins, the neurons of a wide tanh layer have one direction",
        "lines at epoch 50",
        Rule("exactly", 1),
    ),
    Statement(
        "fc-fig1-same",
        "fc-fig1",
        "Fig. 1",
        "the weights from an input to all hidden neurons are then the same (read with size: equal amplitudes)",
        "spread of the amplitudes (std / mean) at epoch 50",
        Rule("at most", 0.1),
    ),
    Statement(
        "fc-fig1-effective",
        "fc-fig1",
        "Fig. 1, Sec. 6",
        "the neurons can be replaced by one effective neuron, although their amplitudes differ",
        "error of the one-neuron network at epoch 50, relative, mean removed",
        Rule("at most", 0.05),
    ),
    Statement(
        "fc-fig1-sum",
        "fc-fig1",
        "Fig. 1",
        "read to the letter: the effective neuron has the input weight of one of them and the sum of all output "
        "weights",
        "error of that neuron at epoch 50, relative, mean removed",
        Rule("at most", 0.05),
    ),
)


def _layers(figure: str, where: str, network: str) -> tuple[Statement, ...]:
    lines = tuple(
        Statement(
            f"{figure}-layer{k}",
            figure,
            where,
            f"{network}, hidden layer {k}, {_multiplicity(name)}: condenses on {_words(LINES[name], 'line')}",
            f"lines at epoch {epoch} (cosine {0.96 if k == 1 else 0.9})",
            Rule("exactly", LINES[name]),
        )
        for k, (name, epoch) in enumerate(zip(FIG4_LAYERS, FIG4_EPOCHS, strict=True), 1)
    )
    most = (
        _at_most_2p(figure, where, f"{network}, layer {k}, {label(name)}", name, f"layer{k}")
        for k, name in enumerate(FIG4_LAYERS, 1)
    )
    return (*lines, *most)


FIG4 = _layers("fc-fig4", "Fig. 4", "six layers with residual connections")
A5 = _layers("fc-a5", "App. A.5", "six layers without residual connections")

FIG5 = (
    *(
        Statement(
            f"fc-fig5-{name}",
            "fc-fig5",
            "Fig. 5, Sec. 4.4",
            f"{label(name)}: at epoch {FIG5_EPOCH} the output is a polynomial of order {LINES[name]}",
            "distance of the output from its best such polynomial, relative",
            Rule("at most", 0.05),
        )
        for name in FIG5_ACTIVATIONS
    ),
    *(
        Statement(
            f"fc-fig5-{name}-begin",
            "fc-fig5",
            "Sec. 4.4",
            f"{label(name)}: in the beginning (1% of the loss gone) the output is a polynomial of order {LINES[name]}",
            "distance of the output from its best such polynomial, relative",
            Rule("at most", 0.05),
        )
        for name in FIG5_ACTIVATIONS
    ),
    *(
        Statement(
            f"fc-fig5-{name}-nonlinear",
            "fc-fig5",
            "Sec. 4.4",
            f"{label(name)}: what is learned first is not linear",
            "distance of the output from its best straight line when 1% of the loss is gone, relative",
            Rule("at least", 0.2),
        )
        for name in FIG5_ACTIVATIONS[1:]
    ),
)

FIG6 = (
    *(
        Statement(
            f"fc-fig6-{name}-field",
            "fc-fig6",
            "Fig. 6",
            f"{label(name)}: the direction field has {_words(LINES[name], 'line')} on which a weight keeps its "
            "direction",
            f"stationary lines at epoch {FIG6_EPOCH}",
            Rule("exactly", LINES[name]),
            trained=False,
        )
        for name in FIG5_ACTIVATIONS
    ),
    *(
        Statement(
            f"fc-fig6-{name}-on",
            "fc-fig6",
            "Fig. 6",
            f"{label(name)}: the neurons lie on the lines of the field",
            f"share of neurons within 10 degrees of such a line at epoch {FIG6_EPOCH}",
            Rule("at least", 0.8),
        )
        for name in FIG5_ACTIVATIONS
    ),
    *(
        Statement(
            f"fc-fig6-{name}",
            "fc-fig6",
            "Fig. 6, Sec. 4.4",
            f"{label(name)}: with one-dimensional input the neurons condense on {_words(LINES[name], 'line')}",
            f"lines at epoch {FIG6_EPOCH}",
            Rule("exactly", LINES[name]),
        )
        for name in FIG5_ACTIVATIONS
    ),
    *(_at_most_2p("fc-fig6", "Fig. 6", label(name), name, name) for name in FIG5_ACTIVATIONS),
)

PROP1 = (
    Statement(
        "fc-prop1-p1",
        "fc-prop1",
        "Prop. 1",
        "multiplicity 1, inputs of any dimension: at most two directions stay",
        "most directions that stay, 1 to 20 inputs",
        Rule("at most", 2),
        trained=False,
    ),
    Statement(
        "fc-prop1-1d",
        "fc-prop1",
        "Prop. 1",
        "one-dimensional input: at most 2p directions stay, whatever the multiplicity p",
        "most directions that stay beyond 2p, p = 1 to 6",
        Rule("at most", 0),
        trained=False,
    ),
    Statement(
        "fc-prop1-flow",
        "fc-prop1",
        "Prop. 1, proof",
        "multiplicity 1: all neurons go to the direction of the mean of residual times input, or to its opposite",
        "median |cos| to it under gradient flow, 1% of the loss gone",
        Rule("at least", 0.99),
    ),
    Statement(
        "fc-prop1-finite",
        "fc-prop1",
        "Remark 1",
        "finitely many directions stay (multiplicity 3, Fig. 3's data)",
        "lines that stay, all of them found",
        Rule("at most", 63),
        trained=False,
    ),
    Statement(
        "fc-prop1-two",
        "fc-prop1",
        "Sec. 4.3, conjecture",
        "multiplicity 2 in six dimensions: at most 2p = 4 orientations attract",
        "attracting orientations of Fig. 3's data",
        Rule("at most", 4),
        trained=False,
    ),
    Statement(
        "fc-prop1-conjecture",
        "fc-prop1",
        "Sec. 4.3, abstract",
        "whatever the multiplicity, the dimension and the data, at most 2p orientations (here p = 3, four dimensions)",
        "orientations found in trained networks with solved labels",
        Rule("at most", 6),
    ),
    Statement(
        "fc-prop1-common",
        "fc-prop1",
        "Sec. 5, proof",
        "what later layers pass back does not depend on the sample, so that all neurons of a layer see one field "
        "(Fig. 4's network, start and end)",
        "least share of one common field, over the layers",
        Rule("at least", 0.9),
        trained=False,
    ),
    Statement(
        "fc-prop1-common-plain",
        "fc-prop1",
        "Sec. 5, proof",
        "the same without residual connections (App. A.5's network)",
        "least share of one common field, over the layers",
        Rule("at least", 0.9),
        trained=False,
    ),
    Statement(
        "fc-prop1-faster",
        "fc-prop1",
        "Remark 1",
        "for small weights the orientation of a neuron changes much faster than its amplitude: |du/dt| against |dr/dt|",
        "ratio of the two at the start, median of the neurons of Fig. 3 (tanh)",
        Rule("at least", 10),
        trained=False,
    ),
    Statement(
        "fc-prop1-faster-rates",
        "fc-prop1",
        "Remark 1",
        "and the more so the smaller they are, also if the amplitude's change is taken relative to itself (|dr/dt|/r)",
        "growth of the ratio of the two rates as the start is made 10 times smaller",
        Rule("at least", 2),
        trained=False,
    ),
    Statement(
        "fc-prop1-outputs-mse",
        "fc-prop1",
        "Sec. 3",
        "of several outputs one need only sum the components (digits, ten classes, MSE)",
        "median |cos| of the neurons to the summed direction (0 where the sum is zero)",
        Rule("at least", 0.95),
    ),
    Statement(
        "fc-prop1-outputs-ce",
        "fc-prop1",
        "Sec. 3",
        "the same with cross-entropy, the loss of Fig. 2",
        "median |cos| of the neurons to the summed direction (0 where the sum is zero)",
        Rule("at least", 0.95),
    ),
    Statement(
        "fc-prop1-multiplicity",
        "fc-prop1",
        "Sec. 1, Remark 3.1",
        "tanh, sigmoid, softplus, gelu and swish have multiplicity 1, x tanh x has 2, x² tanh x has 3",
        "of these seven, as stated",
        Rule("exactly", 7),
        trained=False,
    ),
)

A3_FIG3 = {f"fig3-{name}": (f"Fig. 3, {label(name)}", FIG3_EPOCH) for name in FIG3_RATES}
A3_SIX = {"fig4": ("Fig. 4", max(FIG4_EPOCHS)), "a5": ("App. A.5", max(FIG4_EPOCHS))}
A3_FIG5 = {f"fig5-{name}": (f"Fig. 5, {label(name)}", FIG5_EPOCH) for name in FIG5_ACTIVATIONS}
A3_FIG6 = {f"fig6-{name}": (f"Fig. 6, {label(name)}", FIG6_EPOCH) for name in FIG5_ACTIVATIONS}
A3_FIG2 = {f"fig2-{name}": (f"Fig. 2, {label(name)}", epoch) for name, epoch in FIG2_EPOCHS.items()}
A3 = (
    *(
        Statement(
            f"fc-a3-{key}",
            "fc-a3",
            "Sec. 3, App. A.3",
            f"{where}: epoch {epoch} is in the initial stage, the loss above 70%",
            f"loss at epoch {epoch} over the first",
            Rule("at least", 0.7),
            trained=False,
        )
        for key, (where, epoch) in (A3_FIG2 | A3_FIG3 | A3_SIX | A3_FIG5 | A3_FIG6).items()
    ),
    Statement(
        "fc-a3-end",
        "fc-a3",
        "Sec. 3",
        "70% is early: generally the loss can fall to 1% of its first value (Fig. 3, tanh)",
        "least loss over the first, within 30,000 epochs",
        Rule("at most", 0.01),
    ),
)

A4 = (
    Statement(
        "fc-a4-accuracy",
        "fc-a4",
        "Sec. 4.2, App. A.4",
        "ResNet18-like, tanh: the small start performs as the common one does",
        "test accuracy from the small start minus that from the common one",
        Rule("at least", -0.02),
        trained=False,
    ),
    Statement(
        "fc-a4-learned",
        "fc-a4",
        "App. A.4",
        "the network with the small start is trained well beyond chance",
        "test accuracy from the small start",
        Rule("at least", 0.3),
    ),
)

A6 = tuple(
    Statement(
        f"fc-a6-{key}",
        "fc-a6",
        "Sec. 4.4, App. A.6",
        f"{where}: the layer condenses within the initial stage",
        "first condensed step over the last step of the initial stage",
        Rule("at most", 1),
    )
    for key, where in (
        *((f"fig3-{name}", f"Fig. 3, {label(name)}") for name in FIG3_RATES),
        *((f"fig4-layer{k}", f"Fig. 4, layer {k}") for k in range(1, 6)),
        *((f"fig5-{name}", f"Figs. 5 and 6, {label(name)}") for name in FIG5_ACTIVATIONS),
    )
)

A7 = (
    *(
        Statement(
            f"fc-a7-low-{name}",
            "fc-a7",
            "Sec. 6, App. A.7",
            f"{label(name)}: fewer lines on the low-frequency target than on Fig. 3's, seed by seed",
            f"lines at epoch {FIG3_EPOCH}, less those of Fig. 3",
            Rule("at most", -1),
        )
        for name in ("x_tanh", "x2_tanh")
    ),
    *(
        Statement(
            f"fc-a7-{data}",
            "fc-a7",
            "Sec. 6, App. A.7",
            f"ResNet18-like, x tanh x: fewer lines on {said} than on CIFAR-10",
            "lines where the layer is most condensed within the initial stage, less those on CIFAR-10",
            Rule("at most", -1),
        )
        for data, said in (("mnist", "MNIST"), ("cifar100", "CIFAR-100"))
    ),
)

ALL = (*FIG1, *FIG4, *FIG5, *FIG6, *PROP1, *A3, *A4, *A5, *A6, *A7)
