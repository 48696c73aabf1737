"""``condensation info``."""

from pathlib import Path

from ._output import cell_text, print_json, print_rows


def info(json: bool = False) -> None:
    """Show versions, devices, saved runs, and the names of activations and figures.

    Args:
        json: print the information as JSON.
    """
    import jax

    from .._device import cores
    from .._versions import versions
    from ..activations import ACTIVATIONS
    from ..data._cache import entries, root
    from ..papers import FIGURES

    facts = {
        "versions": versions(),
        "devices": [str(device) for device in jax.devices()],
        "cores": cores(),
        "runs": f"{Path('runs').resolve()} ({len(list(Path('runs').glob('*/run.json')))} kept)",
        "images": f"{root()} ({', '.join(entry.name for entry in entries()) or 'nothing yet'})",
        "activations": list(ACTIVATIONS),
        "figures": list(FIGURES),
    }
    if json:
        print_json(facts)
    else:
        facts["versions"] = [f"{name} {version}" for name, version in versions().items()]
        print_rows((), ((name, cell_text(value)) for name, value in facts.items()))
