"""The words a kernel is declared with: arguments, axes, configs.

A declaration is plain data. `triton_kernel` turns it into targets and actions, and
`functionals` below says which combinations of axis values exist.

    declaration = kernel_declaration(
        entry = "scale",
        axes = [axis("dtype", ["fp16", "fp32"])],
        arguments = [
            tensor("X", "*{dtype}", align = 16),
            scalar("factor", "fp32"),
            scalar("n", "i32"),
            constexpr("BLOCK"),
        ],
        configs = configs_function,
    )
"""

load(":settings.bzl", "PROFILES")

def axis(name, values, labels = None):
    """A compile-time choice.

    Args:
      name: what the dispatcher calls it, e.g. "dtype".
      values: list of strings or ints.
      labels: one string a value, its part of the functional's target name; "" leaves it out.
        Default: the value itself.

    Returns:
      The axis.
    """
    texts = [str(value) for value in values]
    labels = labels if labels != None else texts
    if len(labels) != len(values):
        fail("axis %s has %d values and %d labels" % (name, len(values), len(labels)))
    return struct(name = name, values = texts, labels = labels)

def tensor(name, type, align = 0, unless = None, align_unless = None):
    """A pointer to device memory.

    Args:
      name: the kernel's parameter.
      type: Triton's spelling, e.g. "*fp16"; "{dtype}" stands for an axis value.
      align: the address is a multiple of so many bytes: a promise the dispatcher checks.
      unless: {axis: value}: there the argument is not used and compiled as the constant 0.
      align_unless: {axis: value}: there the promise is not made.
    """
    return struct(kind = "tensor", name = name, type = type, align = align, unless = unless, align_unless = align_unless, constant = "0")

def tensor_map(name, dtype, rows, columns):
    """A tensor (batch, head, row, column) that a kernel of Hopper reads or writes by TMA, in tiles [rows, columns].

    In the kernel it is a tensor descriptor, whose own sizes and strides are not set.

    Args:
      name: the kernel's parameter.
      dtype: of 16 bits; may name an axis in braces, like columns.
      rows: a number, or the constexpr of the config that says it.
      columns: a multiple of 64.
    """
    return struct(
        kind = "tensor_map",
        name = name,
        type = "tensor_map<%s,%s,%s>" % (dtype, rows, columns),
        align = 0,
        unless = None,
        align_unless = None,
        constant = None,
    )

def scalar(name, type, unless = None, constant = 0):
    """A number given at launch; where `unless` holds it is compiled as `constant`.

    `constant` may name an axis in braces: "{head_dim}".
    """
    return struct(kind = "scalar", name = name, type = type, align = 0, unless = unless, align_unless = None, constant = str(constant))

def stride(name, align = 0, align_unless = None, unless = None, constant = 0):
    """A stride in elements, 64-bit; `align` promises a multiple of so many elements."""
    return struct(kind = "stride", name = name, type = "i64", align = align, unless = unless, align_unless = align_unless, constant = str(constant))

def constexpr(name, value = None, unless = None):
    """A compile-time parameter: of the functional when `value` is given, else of the config.

    `value` is text; an axis in braces stands for its value: "{head_dim}". Where `unless`
    holds it is 0.
    """
    return struct(kind = "constexpr", name = name, type = "constexpr", align = 0, unless = unless, align_unless = None, constant = value)

def config(constants, num_warps = 4, num_stages = 1, waves_per_eu = 0, max_registers = 0, max_seqlen_q = None, max_seqlen_k = None, min_fill = None):
    """One way to compile a functional.

    Args:
      constants: {constexpr: int}, e.g. block sizes.
      num_warps: warps of a work group.
      num_stages: depth of the software pipeline.
      waves_per_eu: AMD's occupancy hint; 0 leaves it to the compiler.
      max_registers: NVIDIA's limit of registers a thread, so that more work groups share a
        multiprocessor; 0 leaves it to the compiler.
      max_seqlen_q: the config is chosen up to this seqlen_q. The first config whose bounds hold
        is chosen; the last one of a functional has none.
      max_seqlen_k: and up to this seqlen_k.
      min_fill: and only where its work groups are at least so many percent of the GPU's
        multiprocessors.
    """

    # Left out where nobody sets them: the text of a config is part of its action's key.
    bounds = {
        name: bound
        for name, bound in [("max_seqlen_k", max_seqlen_k), ("min_fill", min_fill)]
        if bound != None
    }
    return struct(
        constants = constants,
        num_warps = num_warps,
        num_stages = num_stages,
        waves_per_eu = waves_per_eu,
        max_registers = max_registers,
        max_seqlen_q = max_seqlen_q,
        **bounds
    )

def kernel_declaration(entry, axes, arguments, configs, exclude = [], archs = None, profiles = {}, general = None, max_spills = -1, fp_fusion = True):
    """What triton_kernel needs to know of a kernel.

    Args:
      entry: the @triton.jit function.
      axes: list of axis(); their order gives the functional number.
      arguments: list of tensor(), tensor_map(), scalar(), stride(), constexpr(), in the kernel's order.
      configs: function(arch, values) -> list of config(), values = {axis: value}.
      exclude: list of {axis: value}: combinations that are not built. Give the reason in a comment.
      archs: those that have the kernel; None: all.
      profiles: {"smoke": list, "core": list} of {axis: value or list of values}: what these hold.
        "core" holds also what "smoke" holds, "full" everything. Without "smoke" it holds what "core" holds, without "core" that holds everything.
      general: {axis: value}: functionals that serve calls with any feature, or none. A filter of features leaves them in.
      max_spills: vector registers that a code object may spill before its action fails; -1: any number.
      fp_fusion: whether the compiler may fuse a multiplication and an addition into one rounding.
    """
    names = {}
    for argument in arguments:
        if argument.name in names:
            fail("%s has two arguments %s" % (entry, argument.name))
        names[argument.name] = True
    for profile in profiles:
        if profile not in PROFILES[:-1]:
            fail("%s has the profile %s; a declaration may give %s" % (entry, profile, ", ".join(PROFILES[:-1])))
    core = profiles.get("core", [{}])
    return struct(
        entry = entry,
        axes = axes,
        arguments = arguments,
        configs = configs,
        exclude = exclude,
        archs = archs,
        profiles = {"smoke": profiles.get("smoke", core), "core": core},
        general = general,
        max_spills = max_spills,
        fp_fusion = fp_fusion,
    )

def matches(values, condition):
    """Whether the functional `values` has every axis value of `condition`, or one of a list."""
    for name, value in condition.items():
        if name not in values:
            fail("no axis is called %s; there are %s" % (name, ", ".join(values.keys())))
        if values[name] not in [str(one) for one in (value if type(value) == "list" else [value])]:
            return False
    return True

def profile_of(declaration, values):
    """The first profile that holds the functional `values`."""
    for profile in PROFILES[:-1]:
        if any([matches(values, condition) for condition in declaration.profiles[profile]]):
            return profile
    return PROFILES[-1]

def is_general(declaration, values):
    """Whether the functional `values` serves calls with any feature, or none."""
    return declaration.general != None and matches(values, declaration.general)

def functionals(declaration):
    """The functionals of a declaration.

    Returns:
      list of struct(label, values): label "bf16.d128.causal", values {axis: value}.
    """
    rows = [struct(labels = [], values = {})]
    for one in declaration.axes:
        rows = [
            struct(labels = row.labels + ([label] if label else []), values = dict(row.values, **{one.name: value}))
            for row in rows
            for value, label in zip(one.values, one.labels)
        ]
    return [
        struct(label = ".".join(row.labels), values = row.values)
        for row in rows
        if not any([matches(row.values, condition) for condition in declaration.exclude])
    ]

def signature(declaration, values):
    """How the arguments of one functional are compiled.

    Returns:
      struct(types, alignments, constants): {argument: Triton type}, {argument: promised
      multiple}, {argument: text of the constant}. Arguments whose constant is the config's
      stand in none of them but `config_constants`, a list of names.
    """
    types, alignments, constants, config_constants = {}, {}, {}, []
    for argument in declaration.arguments:
        unused = argument.unless != None and matches(values, argument.unless)
        if argument.kind == "constexpr" and argument.constant == None:
            config_constants.append(argument.name)
        elif argument.kind == "constexpr":
            constants[argument.name] = "0" if unused else argument.constant.format(**values)
        elif unused:
            constants[argument.name] = argument.constant.format(**values)
        else:
            types[argument.name] = argument.type.format(**values)
            promised = argument.align and not (argument.align_unless and matches(values, argument.align_unless))
            if promised:
                alignments[argument.name] = argument.align
    return struct(types = types, alignments = alignments, constants = constants, config_constants = config_constants)
