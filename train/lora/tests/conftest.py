import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]

import pytest  # noqa: E402
import tiny  # noqa: E402
import torch  # noqa: E402
from prime_lora.base import Base  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    return Base.at(tiny.write(tmp_path_factory.mktemp("base") / "tiny.gguf"))
