"""Public rules: Triton kernels as Bazel targets.

`triton_kernel` declares a kernel, `triton_pack` packs it, `triton_images` gathers packs of one
arch or several into the tree that the library reads; the words of a declaration
(`axis`, `tensor`, `tensor_map`, `scalar`, `stride`, `constexpr`, `config`) come from //kernels:declare.bzl.
"""

load("//platforms:defs.bzl", "TARGETS")
load(":declare.bzl", "functionals", "is_general", "profile_of", "signature")
load(":images.bzl", _triton_images = "triton_images")
load(":private.bzl", "triton_functional", "triton_kernel_functionals", _triton_pack = "triton_pack")

# Only a platform with an arch can compile kernels; elsewhere `//...` leaves them out.
_NEEDS_ARCH = select({
    Label("//platforms/arch:none"): [Label("//platforms:give_an_arch_like_--platforms=gfx950")],
    "//conditions:default": [],
})

triton_pack = _triton_pack
triton_images = _triton_images

def triton_kernel(name, src, declaration, family, deps = [], visibility = None, tags = []):
    """A Triton kernel: a target for each functional, and `name`, which gathers them.

    The functional of label `bf16.d128.causal` is the target `<name>.bf16.d128.causal`; it can
    be built alone: `bazel build //kernels/flash:attn_fwd.bf16.d128.causal --platforms=gfx950`.
    Its outputs are a code object and a JSON report for each config of the platform's arch.

    Args:
      name: of the kernel.
      src: the Python file that defines the entry function.
      declaration: from kernel_declaration().
      family: directory of the pack inside aotriton.images, e.g. "flash".
      deps: Python files that src imports; imports start at the repository's root.
      visibility: of all targets.
      tags: of all targets.
    """
    targets = []
    axes = json.encode([[axis.name, axis.values] for axis in declaration.axes])
    for functional in functionals(declaration):
        compiled = signature(declaration, functional.values)
        target = "%s.%s" % (name, functional.label)
        targets.append(target)
        triton_functional(
            name = target,
            src = src,
            axes = axes,
            configs = {
                arch: json.encode(_checked(declaration.configs(arch, functional.values), compiled, target, arch))
                for arch in TARGETS
                if not declaration.archs or arch in declaration.archs
            },
            deps = deps,
            entry = declaration.entry,
            family = family,
            fp_fusion = declaration.fp_fusion,
            functional = json.encode(functional.values),
            is_general = is_general(declaration, functional.values),
            kernel = name,
            max_spills = declaration.max_spills,
            profile = profile_of(declaration, functional.values),
            signature = json.encode(struct(
                types = compiled.types,
                alignments = compiled.alignments,
                constants = compiled.constants,
            )),
            tags = tags,
            target_compatible_with = _NEEDS_ARCH,
            visibility = visibility,
        )
    triton_kernel_functionals(
        name = name,
        axes = axes,
        family = family,
        functionals = targets,
        kernel = name,
        tags = tags,
        target_compatible_with = _NEEDS_ARCH,
        visibility = visibility,
    )

def _checked(configs, compiled, target, arch):
    """The configs, if they are complete."""
    where = "%s on %s" % (target, arch)
    if not configs or [bound for bound in ("max_seqlen_q", "max_seqlen_k", "min_fill") if getattr(configs[-1], bound, None) != None]:
        fail("%s: the last config must have no max_seqlen_q, max_seqlen_k or min_fill" % where)
    for one in configs:
        if sorted(one.constants.keys()) != sorted(compiled.config_constants):
            fail("%s: a config sets %s, the declaration leaves %s to it" % (where, one.constants.keys(), compiled.config_constants))
    return configs
