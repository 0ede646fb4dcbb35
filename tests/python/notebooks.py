"""Runs docs/notebooks from top to bottom; with --save, leaves what comes out in them.

usage: python notebooks.py [--save] [NAME …]; TORCH_PYTHON is the interpreter that has torch
"""

import os
import pathlib
import re
import sys

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

FOLDER = pathlib.Path(__file__).parents[2] / "docs" / "notebooks"
save = "--save" in sys.argv
wanted = [name for name in sys.argv[1:] if name != "--save"]
os.environ["PYTHONWARNINGS"] = "ignore"
if not save:  # the whole experiment takes minutes
    os.environ.update(PSIFOLD_NOTEBOOK_STEPS="600", PSIFOLD_NOTEBOOK_SEEDS="1")


class Manager(AsyncKernelManager):
    """A kernel of a given interpreter, whatever kernels are installed."""

    interpreter = sys.executable

    def format_kernel_cmd(self, extra_arguments=None):
        return [self.interpreter, "-m", "ipykernel_launcher", "-f", self.connection_file]


class TorchManager(Manager):
    interpreter = os.environ.get("TORCH_PYTHON", sys.executable)


passed = 0
for path in sorted(FOLDER.glob("*.ipynb")):
    if wanted and path.stem not in wanted:
        continue
    notebook = nbformat.read(path, as_version=4)
    needs_torch = any("import torch" in cell.source for cell in notebook.cells)
    client = NotebookClient(
        notebook,
        timeout=1500,
        kernel_manager_class=TorchManager if needs_torch else Manager,
        resources={"metadata": {"path": str(FOLDER)}},
    )
    client.execute()
    passed += 1
    print(f"ok: {path.name}", flush=True)
    if save:
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
        text = re.sub(r"/tmp/psifold-\w+", "…", nbformat.writes(notebook))  # it is gone
        path.write_text(text + "\n")
assert passed, "there is no such notebook"
print(f"{passed} passed, 0 failed")
