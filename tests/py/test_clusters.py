"""Many processes on engines that exist: MPI ranks, a Dask cluster, Ray and joblib run where they are installed. Ray and
joblib are run by their pages (test_docs.py)."""

import sys

import pytest
from conftest import ROOT, needs, output_of


def run(command, tmp_path, **env):
    return output_of(*command, cwd=tmp_path, **env)


@needs("mpi4py", "mpirun", "PIL")
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_mpi_ranks_compute_what_one_process_does(tmp_path, cache_dir, ranks):
    out = run(["mpirun", "--oversubscribe", "-n", str(ranks), sys.executable, str(ROOT / "examples" / "mpi_heat.py"),
               "--rows", "64", "--steps", "20", "--check"], tmp_path,
              OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    assert f"ranks {ranks} rows 64" in out and "equal to one process" in out
    assert (tmp_path / "out" / "mpi_heat.png").exists()


@needs("distributed", "PIL")
def test_a_cluster_compiles_a_kernel_once(tmp_path, cache_dir):
    out = run([sys.executable, str(ROOT / "examples" / "dask_sweep.py"), "--size", "16", "--grid", "2", "--steps", "10"], tmp_path)
    assert "4 simulations on 2 workers" in out and "the kernel was compiled 1 times" in out, out
    assert (tmp_path / "out" / "dask_sweep.png").exists()
