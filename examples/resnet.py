"""A small ResNet on real images: the dense layer behind its convolutions condenses, and is reduced.

FC Fig. 2 in small: two stages of one block, 1280 images. Without a network the digits of scikit-learn serve.
"""

import condensation as c
from condensation.drawing import draw_similarity, save


def main() -> None:
    """Train, print the lines of each saved step, reduce, and draw the cosines."""
    images, sentence = c.images_or_digits("cifar10", n=1280, balanced=True)
    network = c.ResNet(images.shape, 10, hidden=(128, 128), activation="tanh", channels=(16, 32), depth=1, stem="small")
    init = c.Init(c.FanOutPower(1.5), convolution=c.Glorot())
    experiment = c.Experiment(
        network, init, images, c.Adam(5e-5), 200, c.Loss("cross_entropy"), save=c.At((50, 100)), record=c.Evenly(5),
        dtype="float32", batch_size=128,
    )  # fmt: skip
    trajectory = c.train(experiment, seeds=1, progress=True)
    for step in trajectory.saved.tolist():
        lines = c.find_lines(trajectory.weights("dense1", step, 0))
        print(f"step {step}: {lines.count} line(s), cover {lines.cover:.2f}, k_eff {lines.k_eff:.1f}")
    x = trajectory.data(0)[0][:500]
    reduction = c.reduce(trajectory.model(200, 0), x, units=1, untrained=trajectory.model(0, 0))
    print(f"one neuron a dense layer: error {reduction.centred_error:.3f}, untrained {reduction.untrained_error:.3f}")
    title = f"{network.activation}, {images.name}, step 200\n{sentence}".strip()
    save(draw_similarity(trajectory.weights("dense1", 200, 0), title=title), "resnet.png")


if __name__ == "__main__":
    main()
