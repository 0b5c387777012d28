"""The base model: a GGUF file or a folder in the format of Hugging Face."""

import dataclasses
import hashlib
import pathlib
import shutil

import gguf
import torch
import transformers

from .errors import InputError


def gguf_reader(path):
    """A reader of a GGUF file, whose header is whole."""
    try:
        return gguf.GGUFReader(path)
    except (OSError, ValueError, IndexError, KeyError, OverflowError) as error:
        raise InputError(f"{path} cannot be read as a GGUF file: {error}") from error


@dataclasses.dataclass(frozen=True)
class Base:
    """The location of a base model, and its name in cards."""

    path: pathlib.Path

    @classmethod
    def at(cls, path):
        path = pathlib.Path(path)
        if path.is_file():
            with path.open("rb") as file:
                if file.read(4) != b"GGUF":
                    raise InputError(
                        f"{path} is not a GGUF file: give one, or a Hugging Face folder"
                    )
            # transformers reads the rest of a torn file, or fails somewhere in it.
            gguf_reader(path)
        elif not (path / "config.json").is_file():
            raise InputError(f"{path} is neither a GGUF file nor a folder with a config.json")
        return cls(path.resolve())

    @property
    def is_gguf(self):
        return self.path.is_file()

    @property
    def source(self):
        """The arguments that tell transformers where the model is."""
        if self.is_gguf:
            return {"pretrained_model_name_or_path": self.path.parent, "gguf_file": self.path.name}
        return {"pretrained_model_name_or_path": self.path}

    def digest(self):
        """SHA-256 of the file, or of the folder's weights in the order of their names."""
        digest = hashlib.sha256()
        files = [self.path] if self.is_gguf else sorted(self.path.glob("*.safetensors"))
        for name in files:
            with name.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        return digest.hexdigest()

    def config(self):
        return transformers.AutoConfig.from_pretrained(**self.source, local_files_only=True)

    def tokenizer(self):
        """The tokenizer, which must bring a chat template: the program sends chats."""
        tokenizer = transformers.AutoTokenizer.from_pretrained(**self.source, local_files_only=True)
        if not tokenizer.chat_template:
            raise InputError(f"{self.path} has no chat template: use an instruction-tuned model")
        if tokenizer.eos_token_id is None:
            raise InputError(f"{self.path} names no end-of-text token, so no answer would ever end")
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer

    def parameters(self):
        """The number of weights, read from headers, without loading them."""
        if self.is_gguf:
            return sum(int(tensor.n_elements) for tensor in gguf_reader(self.path).tensors)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(self.config())
        return sum(parameter.numel() for parameter in model.parameters())

    def model(self, device, qlora=False, workspace=None):
        """The weights on a device: f32 on a processor, bf16 on a GPU, four bits with `qlora`."""
        if qlora:
            return self.quantized(device, workspace)
        options = {"dtype": torch.float32 if device == "cpu" else torch.bfloat16}
        if self.is_gguf:
            # A packed model trains, but its products are slow, and it cannot be saved.
            options["quantization_config"] = transformers.GgufConfig(dequantize=True)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            **self.source, **options, local_files_only=True
        )
        return model.to(device)

    def quantized(self, device, workspace):
        if device == "cpu":
            raise InputError("--qlora needs a GPU: on a processor train without it")
        try:
            import bitsandbytes  # noqa: F401
        except ImportError as error:
            raise InputError("--qlora needs bitsandbytes: pip install bitsandbytes") from error

        folder = self.path
        if self.is_gguf:
            # bitsandbytes quantizes what it reads from safetensors.
            folder = pathlib.Path(workspace) / "base"
            if not (folder / "config.json").exists():
                unfinished = folder.with_suffix(".unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                self.model("cpu").to(torch.bfloat16).save_pretrained(unfinished)
                unfinished.rename(folder)

        four_bits = transformers.BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16,
        )
        return transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            quantization_config=four_bits,
            dtype=torch.bfloat16,
            device_map=device,
            local_files_only=True,
        )


def device_of(name):
    """`auto` is the first GPU, or the processor."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: torch sees no GPU; use --device cpu")
    return name
