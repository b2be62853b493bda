"""Which functionals a build compiles: a profile, narrowed by filters, or names.

    --//:profile=smoke|core|full    what the declaration puts into it
    --//:head_dims=64,128           of these, those of these tiles
    --//:dtypes=bf16                and of these types
    --//:features=causal            and that switch nothing else on; `none`: nothing at all
    --//kernels:only=attn_fwd.bf16* those of these names instead, whatever the profile
"""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")

# Each holds those before it.
PROFILES = ["smoke", "core", "full"]

NO_FEATURE = "none"

def _profile_flag_impl(ctx):
    value = ctx.build_setting_value
    if value not in PROFILES:
        fail("--//:%s=%s: no such profile. Give one of %s." % (ctx.label.name, value, ", ".join(PROFILES)))
    return BuildSettingInfo(value = value)

profile_flag = rule(
    implementation = _profile_flag_impl,
    build_setting = config.string(flag = True),
    doc = "How much is compiled: `smoke`, `core` or `full`.",
)

def _filter_flag_impl(ctx):
    values = ctx.build_setting_value
    for value in values:
        if not value or (ctx.attr.is_number and not value.isdigit()):
            fail("--//:%s=%s: '%s' is no %s. Give a list like --//:%s=%s." % (
                ctx.label.name,
                ",".join(values),
                value,
                "number" if ctx.attr.is_number else "name",
                ctx.label.name,
                ctx.attr.example,
            ))
    return BuildSettingInfo(value = values)

filter_flag = rule(
    implementation = _filter_flag_impl,
    build_setting = config.string_list(flag = True),
    attrs = {
        "example": attr.string(mandatory = True, doc = "A value, for messages."),
        "is_number": attr.bool(doc = "Whether the values are numbers."),
    },
    doc = "A list that narrows the profile; empty: it does not. `triton_images` checks the values.",
)

SETTINGS = {
    "_dtypes": attr.label(default = "//:dtypes"),
    "_features": attr.label(default = "//:features"),
    "_head_dims": attr.label(default = "//:head_dims"),
    "_only": attr.label(default = "//kernels:only"),
    "_profile": attr.label(default = "//:profile"),
}

def settings_of(ctx):
    """The values of SETTINGS.

    Args:
      ctx: of a rule that has these attributes.

    Returns:
      struct(profile, head_dims, dtypes, features, only); all but the first are lists.
    """
    return struct(
        dtypes = ctx.attr._dtypes[BuildSettingInfo].value,
        features = ctx.attr._features[BuildSettingInfo].value,
        head_dims = ctx.attr._head_dims[BuildSettingInfo].value,
        only = ctx.attr._only[BuildSettingInfo].value,
        profile = ctx.attr._profile[BuildSettingInfo].value,
    )

def describe(settings):
    """The settings as they are written on a command line."""
    words = ["--//kernels:only=" + ",".join(settings.only)] if settings.only else ["--//:profile=" + settings.profile]
    for name in ["head_dims", "dtypes", "features"]:
        if getattr(settings, name):
            words.append("--//:%s=%s" % (name, ",".join(getattr(settings, name))))
    return " ".join(words)

def is_feature(values):
    """Whether an axis of these values switches something on."""
    return sorted(values) == ["0", "1"]

def is_chosen(functional, axes, settings):
    """Whether a build with `settings` compiles a functional.

    Args:
      functional: struct(name, values, profile, is_general).
      axes: {axis: values} of its kernel.
      settings: from settings_of().
    """
    if settings.only:
        if not any([wildcard_match(pattern, functional.name) for pattern in settings.only]):
            return False
    elif PROFILES.index(functional.profile) > PROFILES.index(settings.profile):
        return False
    values = functional.values
    if settings.head_dims and values.get("head_dim", settings.head_dims[0]) not in settings.head_dims:
        return False
    if settings.dtypes and values.get("dtype", settings.dtypes[0]) not in settings.dtypes:
        return False
    if settings.features and not functional.is_general:
        for axis, value in values.items():
            if is_feature(axes[axis]) and value == "1" and axis not in settings.features:
                return False
    return True

def check_filters(kernels, settings, where):
    """Fails for a filter whose value no kernel knows.

    Args:
      kernels: list of {axis: values}, one of each kernel.
      settings: from settings_of().
      where: what asks, for the message.
    """
    features = [axis for axes in kernels for axis, values in axes.items() if is_feature(values)]
    known = {
        "dtypes": [value for axes in kernels for value in axes.get("dtype", [])],
        "features": features + [NO_FEATURE],
        "head_dims": [value for axes in kernels for value in axes.get("head_dim", [])],
    }
    for name, allowed in known.items():
        for value in getattr(settings, name):
            if value not in allowed:
                fail("%s: --//:%s=%s: no kernel has '%s'. There are %s.%s" % (
                    where,
                    name,
                    ",".join(getattr(settings, name)),
                    value,
                    ", ".join({one: None for one in allowed}.keys()),
                    _serving_tile(value, allowed) if name == "head_dims" else "",
                ))

def _serving_tile(value, tiles):
    larger = sorted([int(tile) for tile in tiles if int(tile) > int(value)])
    return " Head dim %s is served by the tile %d." % (value, larger[0]) if larger else ""

def wildcard_match(pattern, text):
    """Whether `text` matches `pattern`, in which * stands for any text."""
    parts = pattern.split("*")
    if len(parts) == 1:
        return pattern == text
    if not text.startswith(parts[0]) or not text.endswith(parts[-1]) or len(text) < len(parts[0]) + len(parts[-1]):
        return False
    middle = text[len(parts[0]):len(text) - len(parts[-1])]
    for part in parts[1:-1]:
        at = middle.find(part)
        if at < 0:
            return False
        middle = middle[at + len(part):]
    return True
