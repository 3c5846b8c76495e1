"""Bytes of an element and of a parameter: what precision recipe, optimizer, adapters and GPU make of each.

Rows of the glossary, as in ``rates``: name, meaning, unit, how it is read from a place.
"""

from __future__ import annotations

from collections.abc import Callable

from advisor.columnwise import Number, choose
from advisor.placement import MEGATRON, Place
from advisor.types.case import Case, Recipe, Training

Row = tuple[str, str, str, Callable[[Place], Number]]

FP32 = 4  # bytes

#: The generation whose eight-bit products read either operand as it lies; its RTX cards are another chip.
READS_EITHER_WAY, ANOTHER_CHIP = "blackwell", "rtx"


def _training(place: Place) -> Training:
    return place.case.training


def _recipe(place: Place) -> Recipe:
    return place.case.training.recipe


def adapters_differ(place: Place) -> bool:
    """Adapters compute in another dtype than the base, so each casts its input anew."""
    return _training(place).lora_bytes != _recipe(place).activation_bytes


def keeps_transposes(case: Case) -> bool:
    """Whether an eight-bit matrix is kept a second time, transposed, for the product that makes its input's gradient.

    Transformer Engine's is_non_tn_fp8_gemm_supported says where it is not.
    """
    device = case.cluster.device
    return device.generation != READS_EITHER_WAY or device.name.startswith(ANOTHER_CHIP)


def _adapter_activation_bytes(place: Place) -> float:
    """Autocast runs fp32 adapters in the base's dtype; without it they compute in their own."""
    training = _training(place)
    autocast = training.precision.endswith(("_autocast", "_mixed"))
    return training.recipe.activation_bytes if autocast and training.lora_bytes else training.lora_bytes


def _adapter_gradient_bytes(place: Place) -> float:
    training = _training(place)
    return training.recipe.gradient_bytes if training.framework in MEGATRON else training.lora_bytes


def _gradient_bytes(place: Place) -> Number:
    """A gradient's own bytes, and those of the narrower one kept beside it until a ZeRO stage divides them."""
    recipe = _recipe(place)
    if not recipe.kept_gradient_bytes:
        return recipe.gradient_bytes
    undivided = place.layout.zero_stage < recipe.gradients_divided_from
    return recipe.gradient_bytes + choose(undivided, recipe.kept_gradient_bytes, 0)


def _stream_bytes(place: Place) -> float:
    """The residual stream is fp32 under autocast over fp32 weights, else it has the activations' dtype."""
    return FP32 if _recipe(place).cast_copy_bytes else _recipe(place).activation_bytes


def _matrix_bytes(place: Place) -> float:
    recipe = _recipe(place)
    transposed = recipe.transpose_bytes if keeps_transposes(place.case) else 0
    return (recipe.matrix_bytes or recipe.weight_bytes) + transposed


def _routed_input_bytes(place: Place) -> float:
    recipe = _recipe(place)
    return recipe.routed_input_bytes or recipe.matrix_input_bytes or recipe.activation_bytes


def _optimizer_bytes(place: Place, kind: str) -> float:
    """Master copy and state bytes per trained parameter: ``matrix`` or ``other``."""
    training = _training(place)
    state = getattr(training.optimizer, f"{kind}_bytes")
    if training.optimizer.follows_precision:
        state = state / FP32 * training.recipe.moment_bytes  # the catalog states fp32 moments
    return float(training.recipe.master_bytes + state)


def _adapter_optimizer_bytes(place: Place) -> float:
    """An adapter's moments have its own dtype, unless the recipe steps an fp32 master copy."""
    training = _training(place)
    state = training.optimizer.matrix_bytes
    if training.recipe.master_bytes or not training.optimizer.follows_precision:
        return float(training.recipe.master_bytes + state)
    return float(state / FP32 * training.lora_bytes)


def _scratch_bytes(place: Place, fp32_bytes: str) -> float:
    """The foreach optimizer makes one temporary of the whole state at once; others work tensor by tensor."""
    training = _training(place)
    moment = training.recipe.moment_bytes if training.optimizer.follows_precision else FP32
    return float(getattr(training.optimizer, fp32_bytes) / FP32 * moment)


def _on_gpu(place: Place) -> Number:
    """Share of the optimizer that stays on the GPU."""
    offloaded = place.layout.offload_optimizer
    if isinstance(offloaded, str):
        return 1.0 if offloaded == "none" else 1.0 - place.layout.offload_fraction
    return choose(offloaded > 0, 1.0 - place.layout.offload_fraction, 1.0)


ROWS: tuple[Row, ...] = (
    ("w", "bytes of an activation element", "B", lambda p: _recipe(p).activation_bytes),
    ("w_x", "bytes of a residual-stream element", "B", _stream_bytes),
    ("w_32", "bytes of an fp32 element", "B", lambda _: FP32),
    ("w_8", "bytes of a mask element", "B", lambda _: 1),
    ("w_i", "bytes of an index element", "B", lambda _: 8),
    ("w_l", "bytes of an adapter's activation element", "B", _adapter_activation_bytes),
    ("w_p", "bytes of an adapter's parameter", "B/param", lambda p: _training(p).lora_bytes),
    ("w_a", "bytes of an adapter's gradient: its own, or Megatron's main gradient's", "B/param", _adapter_gradient_bytes),
    ("w_w", "bytes a weight rests in", "B/param", lambda p: _recipe(p).weight_bytes),
    ("w_f", "bytes a layer's matrix rests in, low-precision copies included", "B/param", _matrix_bytes),
    ("w_u", "bytes of an element of a matrix's input as it is kept", "B", lambda p: _recipe(p).matrix_input_bytes or _recipe(p).activation_bytes),
    ("w_r", "bytes of an element of the experts' input as it is kept", "B", _routed_input_bytes),
    ("w_h", "bytes of an element of attention's output as it is kept", "B", lambda p: _recipe(p).attention_output_bytes or _recipe(p).activation_bytes),
    ("w_z", "bytes of an element of what the activation function reads, as it is kept", "B", lambda p: _recipe(p).gate_bytes or _recipe(p).activation_bytes),
    ("w_b", "bytes of a quantised base weight without its scales", "B/param", lambda p: _training(p).base_weight_bytes),
    ("w_j", "bytes of block scales a quantised weight", "B/param", lambda p: _training(p).base_scale_bytes),
    ("w_n", "bytes a layer's weight is gathered in", "B/param", lambda p: _training(p).base_weight_bytes or _recipe(p).compute_bytes),
    ("w_c", "bytes a weight is gathered and multiplied in", "B/param", lambda p: _recipe(p).compute_bytes),
    ("w_k", "bytes of the autocast copy of a weight", "B/param", lambda p: _recipe(p).cast_copy_bytes),
    ("w_g", "bytes of a gradient, with what is kept beside it", "B/param", _gradient_bytes),
    ("w_d", "bytes a gradient is reduced in", "B/param", lambda p: _recipe(p).reduce_bytes),
    ("w_m", "optimizer bytes of a parameter: master copy and states", "B/param", lambda p: _optimizer_bytes(p, "matrix")),
    ("w_q", "optimizer bytes of an adapter's parameter", "B/param", _adapter_optimizer_bytes),
    ("w_o", "optimizer bytes of an embedding, head or norm parameter", "B/param", lambda p: _optimizer_bytes(p, "other")),
    ("w_s", "bytes of the copy of a gradient that the optimizer steps on", "B/param", lambda p: _recipe(p).step_gradient_bytes),
    ("g_o", "bytes of the gradient that an offloaded optimizer steps on: as wide as its master copy", "B/param", lambda p: max(_recipe(p).gradient_bytes, _recipe(p).master_bytes)),
    ("w_e", "bytes of the copy of a stepped matrix on its way into its resting form", "B/param", lambda p: _recipe(p).step_weight_bytes),
    ("w_t", "scratch bytes of a parameter while the optimizer steps", "B/param", lambda p: _scratch_bytes(p, "step_matrix_bytes")),
    ("w_v", "scratch bytes of a parameter in a tensor that steps alone", "B/param", lambda p: _scratch_bytes(p, "largest_tensor_bytes")),
    ("phi", "share of the optimizer that stays on the GPU", "1", _on_gpu),
)  # fmt: skip
