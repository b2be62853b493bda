"""pack_child.py PLACE STEP=FILE...: calls a kernel while the pack at PLACE is each FILE in turn; without FILE, none.

A process of its own, so that nothing is loaded yet; AOTRITON_IMAGES_DIR is already set. Prints one JSON
line a step: {"step", "ok", "status", "text", "untouched"}.
"""

import json
import pathlib
import shutil
import sys

import aotriton
import torch


def _call_of(kernel):
    """(the output, a function that calls the kernel)."""
    if kernel == "debug_simulate_encoded_softmax":
        r = torch.full((1, 2, 65, 64), float("nan"), device="cuda", dtype=torch.float16)
        return r, lambda: aotriton.debug_simulate_encoded_softmax(r, dropout_p=0.5, philox_seed=1, philox_offset1=2)
    q = torch.randn(1, 2, 65, 64, device="cuda", dtype=torch.float16)
    out = torch.full_like(q, float("nan"))
    return out, lambda: aotriton.attn_fwd(q, q, q, out=out)


def main(place, steps):
    out, call = _call_of(place.stem)
    place.parent.mkdir(parents=True)
    for name, file in steps:
        if file:
            shutil.copyfile(file, place)
        try:
            call()
            status, text = 0, ""
        except aotriton.AotritonError as error:
            status, text = error.status, str(error)
        torch.cuda.synchronize()
        print(json.dumps({"step": name, "ok": status == 0, "status": status, "text": text,
                          "untouched": bool(out.isnan().all())}))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), [step.split("=", 1) for step in sys.argv[2:]])
