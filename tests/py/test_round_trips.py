"""Kernels on their way to workers, from a module, a script and a notebook, by each engine that ships functions: the worker runs
what the sender would."""

import os
import subprocess
import sys

import pytest
from conftest import needs

KERNEL = """
import ingot as qd

POWER = 3

@qd.func
def raised(x):
    return x ** POWER

@qd.kernel
def fill(a: qd.types.ndarray(qd.i32, 1), n: qd.i32):
    for i in a:
        a[i] = raised(i) + n

def work(n):
    import ingot
    ingot.init(cpu_max_num_threads=1)
    a = ingot.ndarray(ingot.i32, 4)
    fill(a, n)
    return a.tolist()
"""

ENGINES = {
    "joblib": """
from joblib import Parallel, delayed
found = Parallel(n_jobs=2)(delayed(work)(n) for n in range(3))
""",
    "dask": """
from distributed import Client, LocalCluster
with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, Client(cluster) as client:
    found = client.gather(client.map(work, range(3)))
""",
    "ray": """
import os
os.environ["RAY_raylet_start_wait_time_s"] = "300"  # a busy machine takes more than Ray's 30
import ray
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
found = ray.get([ray.remote(work).remote(n) for n in range(3)])
ray.shutdown()
""",
    "cloudpickle": """
import base64, cloudpickle, subprocess, sys
text = base64.b64encode(cloudpickle.dumps(work)).decode()
program = f"import base64, pickle; work = pickle.loads(base64.b64decode({text!r})); print([work(n) for n in range(3)])"
found = eval(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
""",
} | {
    f"multiprocessing {method}": f"""
import multiprocessing
with multiprocessing.get_context("{method}").Pool(2) as pool:
    found = pool.map(work, range(3))
""" for method in ("fork", "spawn", "forkserver")
} | {
    f"DataLoader {method}": f"""
from torch.utils.data import DataLoader
loader = DataLoader(Rows(), batch_size=None, num_workers=2, multiprocessing_context="{method}")
found = [row.tolist() for row in loader]
""" for method in ("fork", "spawn", "forkserver")
}
ROWS = """
from torch.utils.data import Dataset

class Rows(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, n):
        import torch
        return torch.tensor(work(n))
"""
NEEDS = {"joblib": "joblib", "dask": "distributed", "ray": "ray", "cloudpickle": "cloudpickle", "DataLoader": "torch"}


def marked(engine):
    thing = NEEDS.get(engine.split()[0])
    mark = needs(thing) if thing else None
    return pytest.param(engine, marks=[mark] if isinstance(mark, pytest.MarkDecorator) else [])


def text_of(engine):
    return KERNEL + (ROWS if engine.startswith("DataLoader") else "")


def check(command, tmp_path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])),
           "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=400, env=env)
    assert "found [[0, 1, 8, 27], [1, 2, 9, 28], [2, 3, 10, 29]]" in done.stdout, done.stdout + done.stderr[-3000:]


@pytest.mark.parametrize("engine", [marked(e) for e in ENGINES])
@pytest.mark.parametrize("place", ["module", "script"])
def test_round_trip(engine, place, tmp_path, cache_dir):
    body = "\n".join("    " + line for line in ENGINES[engine].strip().splitlines())
    names = "from shipped import *" if place == "module" else text_of(engine)
    (tmp_path / "shipped.py").write_text(text_of(engine))
    (tmp_path / "program.py").write_text(f'{names}\n\nif __name__ == "__main__":\n{body}\n    print("found", found)\n')
    check([sys.executable, "program.py"], tmp_path)


# Python itself cannot send what only a notebook has to a process that it starts afresh: by cloudpickle it goes, or by fork.
@needs("nbclient", "nbformat", "ipykernel")
@pytest.mark.parametrize("engine", [marked(e) for e in ENGINES if "spawn" not in e and "forkserver" not in e])
def test_round_trip_from_a_notebook(engine, tmp_path, cache_dir):
    import nbclient
    import nbformat

    cells = [text_of(engine), ENGINES[engine], 'print("found", found)']
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    nbclient.NotebookClient(notebook, timeout=400, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = "".join(out.get("text", "") for out in notebook.cells[-1].outputs)
    assert "found [[0, 1, 8, 27], [1, 2, 9, 28], [2, 3, 10, 29]]" in shown
