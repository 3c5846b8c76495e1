"""The cluster of a case: GPUs, what their driver reports, host and network."""

from __future__ import annotations

from advisor import units
from advisor.catalog.devices import parse_hardware
from advisor.errors import AdvisorError
from advisor.resolve.ledger import Ledger
from advisor.types.arguments import CaseArguments
from advisor.types.case import Cluster, Device


def read_cluster(ledger: Ledger) -> Cluster:
    """The cluster that the arguments name.

    Raises:
        AdvisorError: no hardware, an unknown device, or a memory figure that the device cannot have.
    """
    arguments = ledger.arguments
    if arguments.hardware is None:
        detail = "hardware is missing; give nodes x GPUs, for example '4x8 H100-80GB', or '1 RTX-4090'"
        raise AdvisorError("missing_argument", detail, pointer="/hardware")
    device, nodes, gpus_per_node = parse_hardware(arguments.hardware)
    ledger.note("hardware", f"{nodes}x{gpus_per_node} {device.name}", "given")
    network = units.gb(arguments.network) if arguments.network else device.network_bytes_per_s
    cpu, nvme = arguments.cpu_memory_gib, arguments.nvme_gib
    return Cluster(
        device=device,
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        driver_bytes=_driver_bytes(ledger, arguments, device),
        cpu_bytes_per_node=None if cpu is None else units.gib(cpu),
        nvme_bytes_per_node=None if nvme is None else units.gib(nvme),
        network_bytes_per_s=network,
    )


def _driver_bytes(ledger: Ledger, arguments: CaseArguments, device: Device) -> int:
    """What the driver reports: as given, else the catalog's figure."""
    given = arguments.gpu_memory_gib
    if given is None:
        seen = "" if device.driver_bytes_sourced else "derived from the vendor's figure, not seen published"
        ledger.note("gpu_memory_gib", round(units.as_gib(device.driver_bytes), 2), "catalog", seen)
        return device.driver_bytes
    if units.gib(given) > 2 * device.nominal_bytes:
        nominal = units.format_bytes(device.nominal_bytes)
        detail = f"gpu_memory_gib={given:g} is more than twice the {nominal} of {device.name}"
        raise AdvisorError("invalid_value", detail, pointer="/gpu_memory_gib")
    ledger.note("gpu_memory_gib", given, "given")
    return units.gib(given)
