"""A large folder of safetensors measured layer by layer: `python benchmarks/large_files.py` prints the section.

The folder is synthetic: random bfloat16 weights in shards with an index and a configuration, with the names and shapes
of a decoder of 4096 dimensions, feed-forward layers of 11,008, an embedding of 128,256 rows and, in its last block,
eight stacked experts. The command that a user types runs in a process of its own; its largest resident memory and its
CPU time are those of the operating system.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

WIDTH, HIDDEN, ROWS, EXPERTS = 4096, 11008, 128256, 8


def tensors(layers: int, width: int, hidden: int, rows: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the model's parameters."""
    yield "model.embed_tokens.weight", (rows, width)
    for k in range(layers):
        block = f"model.layers.{k}"
        for name in "qkvo":
            yield f"{block}.self_attn.{name}_proj.weight", (width, width)
        for name, shape in {"gate": (hidden, width), "up": (hidden, width), "down": (width, hidden)}.items():
            yield f"{block}.mlp.{name}_proj.weight", shape
        for name in ("input", "post_attention"):
            yield f"{block}.{name}_layernorm.weight", (width,)
    yield f"model.layers.{layers}.mlp.experts.down_proj", (EXPERTS, hidden // 4, width)


def make(folder: Path, layers: int, width: int = WIDTH, hidden: int = HIDDEN, rows: int = ROWS) -> int:
    """Write the folder, a shard a block; the number of its parameters."""
    rng, places, count, shard = np.random.default_rng(0), {}, 0, dict[str, np.ndarray]()

    def write() -> None:
        name = f"model-{len(set(places.values())) + 1:05}.safetensors"
        save_file(shard, folder / name)
        places.update(dict.fromkeys(shard, name))
        shard.clear()

    folder.mkdir(parents=True, exist_ok=True)
    for name, shape in tensors(layers, width, hidden, rows):
        values = rng.standard_normal(shape, dtype=np.float32)
        values *= 0.02
        shard[name] = values.astype(ml_dtypes.bfloat16)
        count += values.size
        if "layernorm" in name or name.startswith("model.embed"):
            write()
    if shard:
        write()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    config = {"hidden_size": width, "num_attention_heads": 32, "num_local_experts": EXPERTS, "model_type": "llama"}
    (folder / "config.json").write_text(json.dumps(config))
    return count


def measure(folder: Path) -> tuple[float, float, int, int]:
    """CPU and wall seconds, the largest resident memory in bytes, and the measured layers."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "condensation", "measure", str(folder), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        told = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    rows = [row for row in json.loads(told) if not row["reason"]]
    return used.ru_utime + used.ru_stime, time.perf_counter() - began, used.ru_maxrss * 1024, len(rows)


def main() -> None:
    """Write the folder, measure it, and print what it took."""
    layers = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    folder = Path(tempfile.mkdtemp(prefix="large-model-"))
    try:
        parameters = make(folder, layers)
        size = sum(file.stat().st_size for file in folder.iterdir())
        cpu, wall, memory, rows = measure(folder)
    finally:
        shutil.rmtree(folder)
    largest = 4 * ROWS * WIDTH
    print(f"{parameters / 1e9:.2f} billion bfloat16 parameters in {size / 1e9:.1f} GB, {rows} rows:")
    print(f"{cpu:.0f} s of CPU time, {wall:.0f} s; largest resident memory {memory / 1e9:.2f} GB,")
    print(f"{(memory - largest) / 1e9:.2f} GB beyond the largest matrix as float32 ({largest / 1e9:.2f} GB).")
    others = parameters - ROWS * WIDTH  # of the embedding a sample is measured
    minutes = [rate * cpu / 60 for rate in (7e9 / parameters, (7e9 - ROWS * WIDTH) / others)]
    print(f"7 billion parameters at this rate: {minutes[0]:.0f} to {minutes[1]:.0f} minutes of CPU time.")


if __name__ == "__main__":
    main()
