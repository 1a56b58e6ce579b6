import importlib.util
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # two_ranks
if importlib.util.find_spec("cresset_simulated") is None:  # not installed: beside this folder, with CRESSET_BACKEND_PATH for the libraries
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
