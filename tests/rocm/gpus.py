"""The AMD GPUs that this machine lets us use. As a program it prints their archs, one a line."""

import os
import pathlib


def find(root="/"):
    """(archs, in the order in which the runtime numbers the GPUs; why there is none).

    Asks the kernel driver, so it needs no ROCm. root: of the file system.
    """
    root = pathlib.Path(root)
    nodes, kfd = root / "sys/class/kfd/kfd/topology/nodes", root / "dev/kfd"
    if not nodes.is_dir():
        return [], f"{nodes} is not there: no GPU, or its driver (amdgpu) is not loaded"
    if not os.access(kfd, os.R_OK | os.W_OK):
        return [], f"{kfd} may not be opened: it is not in this container, or its group (render) is missing"
    archs, hidden = [], []
    for node in sorted(nodes.iterdir(), key=lambda node: int(node.name)):
        facts = dict(line.split() for line in (node / "properties").read_text().splitlines() if len(line.split()) == 2)
        version = int(facts.get("gfx_target_version", 0))
        if not version:  # a CPU
            continue
        device = root / f"dev/dri/renderD{facts['drm_render_minor']}"
        (archs if os.access(device, os.R_OK | os.W_OK) else hidden).append((_name(version), device))
    why = "" if archs else "no device that may be opened: " + (", ".join(f"{name} {path}" for name, path in hidden) or "only CPUs")
    return [name for name, _ in archs], why


def _name(version):
    """gfx942 of 90402, gfx90a of 90010."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


if __name__ == "__main__":
    print("\n".join(find()[0]))
