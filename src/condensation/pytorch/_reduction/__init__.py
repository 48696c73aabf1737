"""Reduction of PyTorch models: the channels that stand and fall together, merged or pruned, whatever does best.

``given`` copies the model, ``trace`` tells what it computes between its layers, ``graph`` which channels are coupled,
``forms`` what they are made of and by which rule they merge, ``merging`` which become one, ``shrink`` rewrites and cuts
the model, ``probe`` tries that on planted channels first (``recall`` saves it what was computed before). ``samples``
are cut into three parts. On the first the given model is ``observed``, units are chosen by ``elimination``, and a
``sweep`` over what is left refits layers by ``least_squares`` of their ``rows`` and recalibrates norms; ``choose``
takes the best of the ``methods`` by the second part, looking for sizes where ``guess`` says, ``judge`` holds the
``result`` against the model on the third.
"""

from .loading import load_reduced as load_reduced
from .reducer import reduce_model as reduce_model
from .result import ReducedModel as ReducedModel
