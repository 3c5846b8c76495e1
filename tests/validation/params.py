"""Parameter counts against those of real PyTorch modules, component by component and layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from advisor.architecture import count_parameters, outer_parameters, resolve_model
from advisor.errors import AdvisorError
from tests.validation.facts import read_facts


def run(path: Path) -> dict[str, Any]:
    """Compares every model of the file, prints a table and returns how many agree in all figures."""
    models = read_facts(path, "models")["models"]
    differing = {}
    print(f"{'model':<20}{'counted by PyTorch':>22}{'by the product':>22}  differs in")
    for name, facts in models.items():
        counted, wrong = compare(facts)
        if wrong:
            differing[name] = wrong
        print(f"{name:<20}{facts['total']:>22,}{counted:>22,}  {', '.join(wrong) or '-'}")
    return {"n": len(models), "exact": len(models) - len(differing), "differing": differing}


def compare(facts: dict[str, Any]) -> tuple[int, list[str]]:
    """The product's total for one model, and the figures that differ from PyTorch's."""
    try:
        ours = figures(facts["config"])
    except AdvisorError as error:
        return 0, [f"{error.code} at {error.pointer}: {error.detail}"]
    expected = {name: facts[name] for name in ours if name != "per_layer"}
    expected["per_layer"] = [count for name, count in facts["per_layer"].items() if name.startswith("layer.")]
    return ours["total"], [name for name, value in ours.items() if value != expected[name]]


def figures(config: dict[str, Any]) -> dict[str, Any]:
    """The product's figures for a config.json object, under the names that the file uses."""
    model = resolve_model(model=None, hf_config=config, architecture=None, allow_paths=False)
    count, outer = count_parameters(model), outer_parameters(model)
    return {
        "total": count.total,
        "embedding_in": outer.embedding,
        "lm_head": count.head,
        "experts": count.experts,
        "vision": count.vision,
        "norm": count.norms + (model.vision.norms if model.vision else 0),
        "bias": count.biases,
        "active_per_token": count.active,
        "per_layer": list(count.per_layer),
    }
