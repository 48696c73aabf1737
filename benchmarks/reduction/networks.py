"""The networks of the comparison: LeNet-300-100, ResNet-56, VGG-16 with batch norm, MobileNetV2 and a small CNN."""

import torch
from torch import nn
from torch.nn import functional as F

NETWORKS = ("lenet", "cnn", "resnet56", "vgg16", "mobilenetv2")


def make(name: str, seed: int, gain: float = 1.0) -> nn.Module:
    """A network from PyTorch's (for ResNet and VGG He's) initialization, all its weights times ``gain``."""
    torch.manual_seed(seed)
    network = {"lenet": lenet, "cnn": cnn, "resnet56": resnet56, "vgg16": vgg16, "mobilenetv2": mobilenetv2}[name]()
    shrink(network, gain)
    return network


def shrink(network: nn.Module, gain: float) -> None:
    """Multiply the weights of all layers but batch norms by ``gain``, their biases too."""
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                layer.weight *= gain
                if layer.bias is not None:
                    layer.bias.mul_(gain)


def lenet() -> nn.Module:
    """784-300-100-10 with relu."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 100), nn.ReLU(), nn.Linear(100, 10)
    )


def cnn() -> nn.Module:
    """Two convolutions of stride 2 and a hidden layer with relu, for 28 x 28 pixels, without batch norm."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 49, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


class Block(nn.Module):
    """Two convolutions beside a shortcut without parameters: every other pixel, padded with zero channels."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.conv2, self.bn2 = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        self.stride, self.extra = stride, after - before

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        new = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(h)))))
        if self.extra:
            h = F.pad(h[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.extra // 2, self.extra // 2))
        return F.relu(new + h)


class ResNet56(nn.Module):
    """He's ResNet-56 for CIFAR-10: 27 blocks of 16, 32 and 64 channels; 0.86 million parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        blocks = []
        for before, after in ((16, 16), (16, 32), (32, 64)):
            blocks += [Block(before if not k else after, after, 1 + (not k and after > 16)) for k in range(9)]
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.blocks(F.relu(self.bn1(self.conv1(x)))).mean((2, 3)))


def resnet56() -> nn.Module:
    """ResNet-56 from He's initialization."""
    return he(ResNet56())


def vgg16() -> nn.Module:
    """VGG-16 for CIFAR-10: 13 convolutions with batch norm and one dense layer; 14.7 million parameters."""
    layers: list[nn.Module] = []
    before = 3
    for after in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
        if not after:
            layers.append(nn.MaxPool2d(2, ceil_mode=True))  # images of half the size pass, too
            continue
        layers += [nn.Conv2d(before, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        before = after
    return he(nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 10)))


class Inverted(nn.Module):
    """MobileNetV2's block: expand, filter each channel, project; a shortcut where the shapes agree."""

    def __init__(self, before: int, after: int, stride: int, times: int) -> None:
        super().__init__()
        inner = before * times
        layers: list[nn.Module] = []
        if times > 1:
            layers += [nn.Conv2d(before, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU6()]
        layers += [nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False), nn.BatchNorm2d(inner), nn.ReLU6()]
        self.inner = nn.Sequential(*layers, nn.Conv2d(inner, after, 1, bias=False), nn.BatchNorm2d(after))
        self.same = stride == 1 and before == after

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return h + self.inner(h) if self.same else self.inner(h)


def mobilenetv2(first: int = 2) -> nn.Module:
    """MobileNetV2 with ten classes, 2.24 million parameters; ``first`` is the stride of the first convolution."""
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, first, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
    before = 32
    for times, after, count, stride in (
        (1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
    ):  # fmt: skip
        for k in range(count):
            layers.append(Inverted(before, after, stride if not k else 1, times))
            before = after
    layers += [nn.Conv2d(before, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 10))


def he(network: nn.Module) -> nn.Module:
    """He's normal initialization of the convolutions."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return network
