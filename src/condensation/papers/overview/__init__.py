"""The overview of condensation and its sources: clusters that only grow in number, samples that a target needs."""

from .clusters import Clusters
from .samples import Samples

FIGURES = (Clusters, Samples)
