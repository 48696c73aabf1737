"""Reduction of PyTorch models: the channels that stand and fall together, merged where they are of one line.

``trace`` tells what a model computes between its layers, ``graph`` which channels are coupled, ``forms`` what they are
made of and by which rule they merge, ``merging`` which become one, ``shrink`` rewrites and cuts the model, ``probe``
tries that on planted channels first (``recall`` saves it what was computed before), ``fit`` refits readers to data,
``judge`` holds the result against the model.
"""

from .reducer import ReducedModel as ReducedModel
from .reducer import reduce_model as reduce_model
