"""Training: losses, optimizers, schedules, the compiled engine, and the trajectory it leaves.

Import the parts from their modules (``condensation.training.optimizers``) or from ``condensation``.
"""
