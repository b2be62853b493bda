"""pack_child.py GOOD_PACK PLACE: calls attention while the pack at PLACE is missing, cut, changed, whole.

A process of its own, so that nothing is loaded yet; AOTRITON_IMAGES_DIR is already set. Prints one JSON
line a step: {"step", "ok", "status", "text", "untouched"}.
"""

import json
import pathlib
import sys

import aotriton
import torch


def steps(whole):
    """(name, content of the pack); None: no file."""
    changed = bytearray(whole)
    changed[70] ^= 0xFF  # in the section table
    return [("missing", None), ("empty", b""), ("header only", whole[:64]), ("half", whole[: len(whole) // 2]),
            ("changed", bytes(changed)), ("whole", whole)]


def main(good, place):
    q = torch.randn(1, 2, 65, 64, device="cuda", dtype=torch.float16)
    out = torch.full_like(q, float("nan"))
    place.parent.mkdir(parents=True)
    for name, content in steps(good.read_bytes()):
        if content is not None:
            place.write_bytes(content)
        try:
            aotriton.attn_fwd(q, q, q, out=out)
            status, text = 0, ""
        except aotriton.AotritonError as error:
            status, text = error.status, str(error)
        torch.cuda.synchronize()
        print(json.dumps({"step": name, "ok": status == 0, "status": status, "text": text,
                          "untouched": bool(out.isnan().all())}))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
