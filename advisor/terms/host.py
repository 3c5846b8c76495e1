"""What leaves the GPU: bytes one rank keeps in host memory or on NVMe, and a node while it loads and saves."""

from advisor.formula import maximum, term


@term("host.optimizer", source="deepspeed-code stage3.initialize_optimizer_states")
def host_optimizer(G_t, G_r, G_h, G_b, G_e, P_a, tp, ep, etp, w_m, w_o, g_o, z_o, y_o, phi):
    """Master copies, states and the gradients that the offloaded share steps on, as wide as the masters."""
    return (
        (((G_t / tp + P_a) * (w_m + g_o) + (G_r + G_h / tp + G_b) * (w_o + g_o)) / z_o + G_e / (ep * etp) * (w_m + g_o) / y_o)
        * (1 - phi)
    )  # fmt: skip


@term("host.parameters", source="zero-infinity-2021 §5", base="plain")
def host_parameters(P_t, P_r, P_e, tp, ep, etp, w_w, z_w, y_w):
    """Weights that are fetched when they are needed."""
    return (P_t / tp + P_r) * w_w / z_w + P_e / (ep * etp) * w_w / y_w


@term("host.parameters", source="qlora-2023 §3", base="quantized", expert_base="quantized")
def host_parameters_quantized(P_t, P_l, P_r, P_e, tp, ep, etp, w_b, w_w, z_b, z_w):
    """Quantised matrices that are fetched as they are, and the unquantised rest."""
    return (P_l / tp + P_e / (ep * etp)) * w_b / z_b + ((P_t - P_l) / tp + P_r) * w_w / z_w


@term("host.parameters", source="qlora-2023 §3", base="quantized", expert_base="plain")
def host_parameters_quantized_dense(P_t, P_l, P_r, P_e, tp, ep, etp, w_b, w_w, z_b, z_w, y_w):
    """Quantised matrices outside the experts, and the unquantised rest."""
    return P_l / tp * w_b / z_b + ((P_t - P_l) / tp + P_r) * w_w / z_w + P_e / (ep * etp) * w_w / y_w


# --- what DeepSpeed keeps in CPU memory beside them -------------------------------------------------------------------


@term("host.gradients", source="deepspeed-code stage3._setup_for_real_optimizer, grad_partitions_flat_buffer")
def host_gradients(G_t, G_r, G_h, G_b, G_e, P_a, tp, ep, etp, w_g, z_o, y_o):
    """ZeRO-3: a rank's gradients, where micro-batches add up; all, whatever share of the optimizer is offloaded."""
    return (((G_t + G_h) / tp + G_b + G_r + P_a) / z_o + G_e / (ep * etp) / y_o) * w_g


@term(
    "host.step_buffers",
    source="deepspeed-code stage_1_and_2.__init__, async_accumulate_grad_in_cpu_via_gpu",
    adapters="off",
)
def host_step_buffers(G_t, G_r, G_h, G_b, G_e, tp, ep, etp, w_w, z_o, y_o, x_g, N_t):
    """Below ZeRO-3: a rank's stepped weights, its gradients where micro-batches add up, one tensor's gradient."""
    return ((((G_t + G_h) / tp + G_b + G_r) / z_o + G_e / (ep * etp) / y_o) * (1 + x_g) + N_t) * w_w


@term(
    "host.step_buffers",
    source="deepspeed-code stage_1_and_2.__init__, async_accumulate_grad_in_cpu_via_gpu",
    adapters="on",
)
def host_step_buffers_adapters(P_a, w_p, z_o, x_g):
    """Below ZeRO-3: a rank's stepped adapters, and their gradients where micro-batches add up."""
    return P_a / z_o * (1 + x_g) * w_p


@term("host.state_buffers", source="deepspeed-swapping utils.SwapBufferManager")
def host_state_buffers(G_t, G_r, G_h, G_b, G_e, P_a, tp, ep, etp, g_o, z_o, y_o, s_g, n_v):
    """Page-locked buffers that swapped masters, states and gradients pass through: one sub-group's."""
    return n_v * (((G_t + G_h) / tp + G_b + G_r + P_a) / z_o + G_e / (ep * etp) / y_o) * s_g * g_o


@term("host.weight_buffers", source="deepspeed-swapping partitioned_param_swapper; stage3 max_in_cpu")
def host_weight_buffers(G_t, G_r, G_h, G_b, G_e, P_a, tp, ep, etp, w_w, z_o, y_o, s_g, x_v, B_v):
    """Of weights on NVMe: what stays in CPU memory, a sub-group on its way back to NVMe, the pool they are read into."""
    return ((((G_t + G_h) / tp + G_b + G_r + P_a) / z_o + G_e / (ep * etp) / y_o) * s_g * (1 + x_v) + B_v) * w_w


# --- a node while weights load ---------------------------------------------------------------------------------------


@term("host.loading", source="pytorch-dcp-filesystem FileSystemReader.read_data", loading="by_tensor")
def loading_by_tensor(R_n, N_t, w_w, x_h, P_t, P_r, P_e, tp, ep, etp, z_w, y_w):
    """Each rank reads its own, a tensor after the other; offloaded weights gather there."""
    return R_n * (N_t * w_w + x_h * ((P_t / tp + P_r) * w_w / z_w + P_e / (ep * etp) * w_w / y_w))


@term("host.loading", source="accelerate fsdp2_prepare_model", loading="one_rank")
def loading_one_rank(K_w, R_n, w_w, x_h, P_t, P_r, P_e, tp, ep, etp, z_w, y_w):
    """One rank of the node holds the whole model and hands it out; offloaded weights gather beside it."""
    return K_w * w_w + R_n * x_h * ((P_t / tp + P_r) * w_w / z_w + P_e / (ep * etp) * w_w / y_w)


@term("host.loading", source="transformers modeling_utils.from_pretrained", loading="every_rank")
def loading_every_rank(R_n, K_w, w_w):
    """Each rank holds a whole model of its own, whose parts leave or shrink one after the other."""
    return R_n * K_w * w_w


@term("host.loading", source="deepspeed-memory", loading="every_rank_fp32")
def loading_every_rank_fp32(R_n, K_w, w_F):
    """Each rank makes the whole model in PyTorch's default dtype before it is cast and divided."""
    return R_n * K_w * w_F


# --- a node while a checkpoint is saved, beside what rests there anyway ----------------------------------------------


@term("host.saving", source="pytorch-dcp-filesystem FileSystemWriter.write_data", saving="by_tensor")
def saving_by_tensor(R_n, N_t, w_F):
    """Each rank writes its own, a tensor after the other."""
    return R_n * N_t * w_F


@term("host.saving", source="deepspeed-engine _save_checkpoint, _save_zero_checkpoint", saving="by_group")
def saving_by_group(R_n, s_g, phi, w_F, G_t, G_r, G_h, G_b, G_e, P_a, tp, ep, etp, z_o, y_o, K_u, w_K):
    """The largest flat tensor of each rank on a GPU, one after the other, or before that a copy of undivided weights."""
    return maximum(
        R_n * s_g * phi * w_F * ((G_t / tp + P_a + G_r + G_h / tp + G_b) / z_o + G_e / (ep * etp) / y_o),
        K_u * w_K,
    )


@term("host.saving", source="megatron-dist-checkpointing FileSystemWriterAsync.preload_tensors", saving="staged")
def saving_staged(R_n, K_d, K_e, w_K, phi, G_t, G_r, G_h, G_b, G_e, P_a, tp, ep, etp, w_m, w_o, D_d, D_e):
    """Each rank copies its part of weights and states before it writes; none is written twice."""
    return R_n * (
        (K_d * w_K + phi * ((G_t / tp + P_a) * w_m + (G_r + G_h / tp + G_b) * w_o)) / D_d
        + (K_e * w_K + phi * G_e * w_m) / (ep * etp) / D_e
    )


@term("host.saving", source="safetensors-code torch.save_file", saving="weights")
def saving_weights(K_s, w_K):
    """One rank gathers the weights."""
    return K_s * w_K


@term("host.saving", source="accelerate save_fsdp_model, save_fsdp_optimizer", saving="in_turn")
def saving_in_turn(K_s, w_K, K_m, w_m, K_o, w_o):
    """One rank gathers the weights and, when they are written, the states."""
    return maximum(K_s * w_K, K_m * w_m + K_o * w_o)


@term("host.saving", source="pytorch-dcp-state-dict get_state_dict", saving="whole")
def saving_whole(K_s, w_K, K_m, w_m, K_o, w_o):
    """One rank gathers weights and states together."""
    return K_s * w_K + K_m * w_m + K_o * w_o


TERMS = (
    host_optimizer, host_parameters, host_parameters_quantized, host_parameters_quantized_dense,
    host_gradients, host_step_buffers, host_step_buffers_adapters, host_state_buffers, host_weight_buffers,
    loading_by_tensor, loading_one_rank, loading_every_rank, loading_every_rank_fp32,
    saving_by_tensor, saving_by_group, saving_staged, saving_weights, saving_in_turn, saving_whole,
)  # fmt: skip
