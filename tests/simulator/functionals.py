"""The functionals of the images: which there are, a problem for each, and what became of them.

Every launch of a functional is a line of functionals.jsonl in the test's undeclared outputs; table.py shows all of them.
"""

import json
import os
import pathlib
import re

import aotriton
import torch

from tests.gpu.attention_case import BACKWARD_FACTOR, FORWARD_FACTOR, Case
from tests.simulator import host_memory, simulated_gpu
from tests.simulator.simulated_gpu import ARCHS

IMAGES = pathlib.Path(os.environ["AOTRITON_IMAGES_DIR"])
BUILT = [arch for arch in ARCHS if (IMAGES / f"amd-{arch}").exists()]
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
# The last kernel that a result went through, by op.
FROM = {"attn_fwd": {"out", "lse"}, "attn_fwd_persistent": {"out", "lse"}, "bwd_preprocess": {"dq", "dk", "db"},
        "bwd_dkdv": {"dk", "dv"}, "bwd_dq": {"dq", "db"}, "bwd_fused": {"dq", "dk", "dv", "db"}}
_LAUNCH = re.compile(r"^aotriton: launch of (\w+) \[([^]]*)\] \[([^]]*)\]", re.MULTILINE)


def named(arch):
    """The names of all functionals that the images of `arch` hold, as the manifest has them."""
    packs = json.loads((IMAGES / f"amd-{arch}/manifest.json").read_text())["packs"]
    return {name for pack in packs.values() for name in pack["functionals"]}


def _name(kernel, values):
    """attn_fwd, dtype=bf16 head_dim=64 causal=1 bias=0 layout=any: attn_fwd.bf16.d64.causal.any."""
    words = [kernel]
    for axis, value in (pair.split("=") for pair in values.split()):
        if axis == "head_dim":
            words.append(f"d{value}")
        elif value in ("0", "1"):
            words += [axis] * int(value)
        elif value != "aligned":
            words.append(value)
    return ".".join(words)


class Problem(Case):
    """The problem of a functional named like bf16.d64.causal.any: small, but no less than two tiles in each direction."""

    def __init__(self, name):
        dtype, head_dim, *flags = name.split(".")
        d, is_any = int(head_dim[1:]), "any" in flags
        # Past the end of the largest block of any arch's configs.
        seqlens = (143, 88) if d <= 128 and dtype != "fp32" else (75, 56) if d <= 256 else (37, 40)
        d -= 3 * is_any  # of no tile's size
        aligned = {"bias": "pitch8", "db": "pitch8"}
        super().__init__((1, 2, 1, *seqlens, d, d), DTYPES[dtype], is_causal="causal" in flags, bias="bias" in flags,
                         dropout_p=0.25 if "dropout" in flags else 0.0, layouts={} if is_any else aligned, numbers=d)
        self.ratios = {}

    def _note(self, op, output, ratio, factor):
        self.ratios[output] = ratio


def run(arch, op, case, capfd):
    """Runs one op of a case on an arch and notes its launches. What was wrong, or "".

    op: forward, persistent, split or fused.
    """
    capfd.readouterr()
    simulated_gpu.launches()
    case.ratios.clear()
    factor = FORWARD_FACTOR if op in ("forward", "persistent") else BACKWARD_FACTOR
    verdict, text = "right", ""
    try:
        if op == "forward":
            case.forward()
        elif op == "persistent":
            case.run_forward(persistent_counter=case.counter)
            case.check_forward()
        else:
            case.backward(op, case.bias is not None)
    except aotriton.AotritonError as error:
        verdict, text = ("stopped", simulated_gpu.fault()) if "LaunchFailure" in str(error) else ("refused", str(error))
    except AssertionError as error:
        verdict, text = "wrong", str(error)
    finally:
        host_memory.release()
    launched = [(kernel, _name(kernel, values), config) for kernel, values, config in _LAUNCH.findall(capfd.readouterr().err)]
    counts = simulated_gpu.launches()
    if verdict == "refused":
        launched.append((op, f"{op} of {case.dtype}", ""))
    for i, (kernel, functional, config) in enumerate(launched):
        ratios = {output: ratio for output, ratio in case.ratios.items() if output in FROM.get(kernel, ())}
        worst = max(ratios, key=ratios.get, default="")
        mine, why = verdict, text
        if verdict == "right" and worst and not ratios[worst] <= factor:
            mine, why = "wrong", f"{worst} errs {ratios[worst]:.2f} x the floor; allowed {factor:g}"
        elif verdict == "stopped" and i < len(counts):
            mine, why = "right", ""  # a later launch of the call is what stopped
        note(arch, functional, mine, why, config=config, op=op, output=worst, ratio=ratios.get(worst, 0.0),
             counts=counts[i] if i < len(counts) else None)
        if mine != "right":
            verdict, text = (mine, why) if verdict == "right" else (verdict, text)
    return [functional for _, functional, _ in launched], "" if verdict == "right" else f"{arch} {op} {verdict}: {text}"


def note(arch, functional, verdict, text="", *, config="", op="", output="", ratio=0.0, counts=None):
    """A line of functionals.jsonl."""
    _, instructions, seconds = counts or ("", 0, 0.0)
    line = {"arch": arch, "functional": functional, "config": config, "op": op, "verdict": verdict, "text": text, "output": output,
            "ratio": ratio, "instructions": instructions, "seconds": seconds}
    with open(pathlib.Path(os.environ["TEST_UNDECLARED_OUTPUTS_DIR"], "functionals.jsonl"), "a") as file:
        file.write(json.dumps(line) + "\n")
