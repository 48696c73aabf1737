"""Two processes of DistributedDataParallel (gloo): the first one writes, and the weights are as without."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from condensation import load_run

pytestmark = pytest.mark.pytorch

WAYS = ("none", "early", "late", "torchrun")
PROGRAM = """
import json, os, sys
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from safetensors.torch import save_file
from condensation import Every
from condensation.pytorch import watch

rank, folder = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
told, watchers, networks = {way: [] for way in sys.argv[3:]}, {}, {}


def begin(way, model):
    if way == "torchrun":  # its variables are there before the processes have met
        os.environ["RANK"] = str(rank)
    to = lambda numbers, step: told[way].append(step)
    watchers[way] = watch(model, f"{folder}/{way}", schedule=Every(4), keep=["0.weight"], to=to, budget=None)
    os.environ.pop("RANK", None)


for way in told:
    torch.manual_seed(rank)  # the start of the first process is everyone's
    networks[way] = nn.Sequential(nn.Linear(5, 30), nn.Tanh(), nn.Linear(30, 4))
    if way in ("late", "torchrun"):
        begin(way, networks[way])
distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", world_size=2, rank=rank)
for way in told:
    networks[way] = DistributedDataParallel(networks[way])
    if way == "early":
        begin(way, networks[way])
    optimizer, watcher = torch.optim.SGD(networks[way].parameters(), 0.1), watchers.get(way)
    for step in range(10):
        loss = networks[way](torch.linspace(-1, 1, 40).reshape(8, 5).add(rank + step).sin()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if watcher is not None:
            watcher.step(loss)
    steps = []
    if watcher is not None:
        watcher.close()
        steps = sorted({row.step for row in watcher.rows})
    save_file(networks[way].module.state_dict(), f"{folder}/{way}-{rank}.safetensors")
    with open(f"{folder}/{way}-{rank}.json", "w") as file:
        json.dump({"steps": steps, "told": told[way]}, file)
distributed.barrier()
os._exit(0)  # gloo's threads may wait for ever for a process that ends in good order
"""


def test_the_first_process_writes_once(tmp_path):
    """Watched after the processes have met, before, and before but started by torchrun; and not at all."""
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")} | {"OMP_NUM_THREADS": "1"}
    commands = [[sys.executable, "-c", PROGRAM, str(rank), str(tmp_path), *WAYS] for rank in (0, 1)]
    processes = [subprocess.Popen(one, env=environment, stderr=subprocess.PIPE, text=True) for one in commands]
    for process in processes:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    trained = load_file(tmp_path / "none-0.safetensors")
    steps = [0, 4, 8, 10]
    for way in WAYS[1:]:
        first, second = (json.loads((tmp_path / f"{way}-{rank}.json").read_text()) for rank in (0, 1))
        assert first == {"steps": steps, "told": steps}
        assert second == {"steps": [], "told": []}
        names = {path.name for path in (tmp_path / way).iterdir()}
        assert names == {"run.json", "data0-init0.safetensors", "initial.safetensors"}
        found = load_run(tmp_path / way)
        assert found.recorded.tolist() == steps
        for rank in (0, 1):
            state = load_file(tmp_path / f"{way}-{rank}.safetensors")
            assert all(torch.equal(state[name], trained[name]) for name in trained)
        assert np.array_equal(found.weights("0.weight", 10, 0)[:, :5], trained["0.weight"].numpy())
