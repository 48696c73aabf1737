"""``condensation info``."""

from pathlib import Path

from rich.table import Table

from ._output import in_words, print_json, print_table


def info(json: bool = False) -> None:
    """Versions, devices, the runs kept here, and what can be named.

    Args:
        json: print as JSON.
    """
    import jax

    from .._device import cores
    from .._versions import versions
    from ..activations import ACTIVATIONS
    from ..data._cache import entries, root
    from ..papers import FIGURES

    found = {
        "versions": versions(),
        "devices": [str(device) for device in jax.devices()],
        "cores": cores(),
        "runs": f"{Path('runs').resolve()} ({len(list(Path('runs').glob('*/run.json')))} kept)",
        "images": f"{root()} ({', '.join(entry.name for entry in entries()) or 'nothing yet'})",
        "activations": list(ACTIVATIONS),
        "figures": list(FIGURES),
    }
    if json:
        print_json(found)
        return
    table = Table(show_header=False, box=None)
    for name, value in found.items():
        pairs = value.items() if isinstance(value, dict) else ()
        table.add_row(name, ", ".join(f"{k} {v}" for k, v in pairs) or in_words(value))
    print_table(table)
