"""The notebook of examples/ runs from top to bottom in a Jupyter kernel, cold and warm, and shows what it says."""

import os

from conftest import ROOT, needs


def run(cache):
    """The outputs of all cells, in order."""
    import nbclient
    import nbformat

    notebook = nbformat.read(ROOT / "examples" / "tour.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear the outputs before committing"
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3",
                            resources={"metadata": {"path": str(cache)}}).execute()
    return [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]


@needs("nbclient", "nbformat", "ipykernel", "PIL")
def test_the_notebook(cache_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("INGOT_CACHE_DIR", os.environ.get("INGOT_CACHE_DIR", str(cache_dir)))
    for _ in ("cold", "warm"):
        outputs = run(tmp_path)
        assert not [out for out in outputs if out.output_type == "error"]
        text = "".join(out.get("text", "") for out in outputs)
        data = [out.data for out in outputs if out.output_type in ("execute_result", "display_data")]
        assert "compiled in this cell: 0" in text
        assert any("image/png" in d for d in data)
        pages = [d["text/html"] for d in data if "text/html" in d]
        assert any("ripple" in page and "total ms" in page for page in pages), pages
        assert any("N: 256 -&gt; 128" in page for page in pages), pages
        assert any("9.9" in page and "StructNdarray" in page or "struct" in page for page in pages)
