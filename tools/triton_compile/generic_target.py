"""triton_compile for a family of archs: `--arch gfx11-generic` makes one code object that all its chips run.

Triton lowers a kernel for a chip. Within a family its LLVM IR is the same text for every chip, and
only LLVM's code generation tells them apart; so the IR of one chip is handed to LLVM's generic
target, which uses what all chips have in common.
"""

import dataclasses
import os
import re
import sys
import types

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import triton_compile  # noqa: E402

# The chip that Triton lowers for.
CHIP_OF = {"gfx11-generic": "gfx1100", "gfx12-generic": "gfx1201"}

# LLVM's generic targets exist from this version of the code object on.
CODE_OBJECT_VERSION = 600
_VERSION_FLAG = re.compile(r'(!"amdhsa_code_object_version", i32) \d+')


def add_generic_targets():
    """Teaches Triton's AMD backend the targets of CHIP_OF."""
    from triton.backends import backends
    from triton.backends.amd.compiler import HIPBackend
    from triton.backends.compiler import GPUTarget

    class GenericBackend(HIPBackend):
        def __init__(self, target):
            self.generic = target.arch
            super().__init__(GPUTarget(target.backend, CHIP_OF[target.arch], target.warp_size))

        def make_amdgcn(self, src, metadata, options):
            src, count = _VERSION_FLAG.subn(rf"\1 {CODE_OBJECT_VERSION}", src)
            if count != 1:
                raise triton_compile.CompileError(f"Triton's LLVM IR sets the code object version {count} times, not once")
            return HIPBackend.make_amdgcn(src, metadata, self._for_generic(options))

        def make_hsaco(self, src, metadata, options):
            return HIPBackend.make_hsaco(src, metadata, self._for_generic(options))

        def _for_generic(self, options):
            return types.SimpleNamespace(**{**vars(options), "arch": self.generic})

    backends["amd"] = dataclasses.replace(backends["amd"], compiler=GenericBackend)


def main(arguments):
    triton_compile.__file__ = os.path.join(HERE, os.path.basename(__file__))  # what a failure tells people to run
    site = arguments[arguments.index("--site") + 1]
    sys.path.insert(0, os.path.abspath(site))
    add_generic_targets()
    return triton_compile.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
