"""The consumer's kernel stands in a pack for each arch, with its arguments and code."""

import glob
import os

from tools.pack.format import read_pack

HERE = os.path.dirname(os.path.abspath(__file__))

packs = {}
for path in glob.glob(os.path.join(HERE, "aotriton.images/*/examples/vector_add.pack")):
    pack = read_pack(path)
    packs[pack.meta["arch"]] = pack

assert sorted(packs) == ["gfx1100", "gfx942"], sorted(packs)
for arch, pack in packs.items():
    assert [f.values for f in pack.functionals] == [("fp16",), ("fp32",)]
    for functional in pack.functionals:
        names = [name for name, _ in functional.arguments]
        assert names == ["X", "Y", "Z", "n", "global_scratch", "profile_scratch"], names
        (variant,) = functional.variants
        assert variant.code.startswith(b"\x7fELF") and variant.constants == {"BLOCK": 1024}
print("vector_add is packed for", ", ".join(sorted(packs)))
