"""`python -m tests.validation.recount MODEL`: what PyTorch saves in each layer of a catalog model, beside our count."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from advisor import phases
from advisor.architecture.presets import find_preset, preset_entry, unknown_model
from advisor.errors import AdvisorError
from advisor.estimate import estimate
from tests.validation.activations import saved_bytes
from tests.validation.facts import BadCallError
from tests.validation.torch_cases import case_of

BAD_CALL = 64
NEEDED = ("torch", "transformers")

Config = Mapping[str, Any]


def language_model(name: str) -> Config:
    """The config of a catalog model; of its language model where it also sees images.

    Raises:
        AdvisorError: the catalog does not know the name.
    """
    preset = find_preset(name)
    if preset is None:
        raise unknown_model(name)
    config: Config = preset_entry(preset)["config"]
    inner = config.get("text_config")
    return {"model_type": f"{config['model_type']}_text", **inner} if inner else config


def shortened(config: Config, layers: int) -> Config:
    """The config with its first layers only.

    Raises:
        BadCallError: the model has fewer layers.
    """
    name = next(name for name in ("num_hidden_layers", "n_layer") if name in config)
    if not 1 <= layers <= config[name]:
        raise BadCallError(f"--layers {layers}: the model has {config[name]}; accepted: 1 to {config[name]}")
    changed: dict[str, Any] = {
        key: value[:layers] for key, value in config.items() if _is_per_layer(value, config[name])
    }
    if "moe_layers" in config:
        changed["moe_layers"] = [index for index in config["moe_layers"] if index < layers]
    if "first_k_dense_replace" in config:
        changed["first_k_dense_replace"] = min(config["first_k_dense_replace"], layers)
    return {**config, **changed, name: layers}


def _is_per_layer(value: Any, layers: int) -> bool:
    return isinstance(value, list) and len(value) == layers


def ours(config: Config, options: Config) -> tuple[int, int]:
    """Our count of what the layers save, and of what is saved outside them."""
    breakdown = estimate(case_of(options, config, framework="single", hardware="1 H100-80GB"))
    lines = breakdown.stages[0].lines
    inside = sum(line.at(phases.FORWARD) for line in lines if line.term.slot in phases.LAYER_SLOTS)
    return inside, saved_bytes(breakdown) - inside


def ours_by_layer(config: Config, options: Config, layers: int) -> list[int]:
    """Our count for each layer: what it adds to a model of the layers before it."""
    totals = [0, *(ours(shortened(config, count), options)[0] for count in range(1, layers + 1))]
    return [after - before for before, after in pairwise(totals)]


def counted(config: Config, sequence: int, attention: str) -> tuple[list[int], int]:
    """PyTorch's count of each layer, and of what is saved outside them.

    Raises:
        BadCallError: PyTorch or transformers is not installed, or the case cannot be counted without a GPU.
    """
    try:
        modules = importlib.import_module("tests.validation.recount.modules")
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        raise BadCallError(f"{error.name} is not installed; run: pip install --group validate-torch") from error
    saved = modules.count_saved(config, sequence=sequence, attention=attention)
    return saved.by_layer, saved.outside


def table(rows: Sequence[tuple[str, int, int]]) -> str:
    """Ours beside PyTorch's, row by row and in all."""
    whole = ("all", sum(row[1] for row in rows), sum(row[2] for row in rows))
    lines = [f"{'':<12}{'ours':>18}{'PyTorch':>18}{'error':>9}"]
    lines += [f"{name:<12}{our:>18,}{their:>18,}{our / their - 1:>+9.2%}" for name, our, their in (*rows, whole)]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table; 0 when it was counted, 64 when the call is not understood."""
    parser = argparse.ArgumentParser(prog="python -m tests.validation.recount", description=__doc__)
    parser.add_argument("model", metavar="MODEL", help="a model of the catalog, such as llama-3-8b")
    parser.add_argument("--layers", type=int, default=2, help="how many of its layers (2)")
    parser.add_argument("--sequence", type=int, default=2048, help="tokens (2048)")
    parser.add_argument("--attention", choices=("sdpa", "eager"), default="sdpa")
    given = parser.parse_args(arguments)
    options = {"seq": given.sequence, "mbs": 1, "attn": given.attention}
    try:
        if given.sequence < 1:
            raise BadCallError(f"--sequence {given.sequence}; accepted: 1 or more tokens")  # noqa: TRY301
        whole = language_model(given.model)
        config = shortened(whole, given.layers)
        by_layer, outside = counted(config, given.sequence, given.attention)
        ours_each = ours_by_layer(whole, options, given.layers)
        outside_ours = ours(config, options)[1]
    except (BadCallError, AdvisorError) as error:
        print(error, file=sys.stderr)
        return BAD_CALL
    names = [f"layer {index}" for index in range(given.layers)]
    print(table([*zip(names, ours_each, by_layer, strict=True), ("outside", outside_ours, outside)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
