"""What a build claims to be: the flags //:release and //:namespace_suffix, and what is made of them."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@rules_cc//cc:defs.bzl", "CcInfo")
load(":version.bzl", "DEFAULT_RELEASE", "RELEASES")

ClaimInfo = provider("What a build claims to be.", fields = {
    "release": "\"0.11.2\"",
    "suffix": "Of the namespace and of the library's name; may be empty.",
})

def _release_flag_impl(ctx):
    value = ctx.build_setting_value
    parts = value.split(".")
    series = ".".join(parts[:2])
    if series not in RELEASES or len(parts) > 3 or not parts[-1].isdigit():
        fail("%s=%s: no such release. Give one of %s, or one with its patch number, like %s." % (
            ctx.label.name,
            value,
            ", ".join(RELEASES),
            RELEASES["0.11"],
        ))
    return BuildSettingInfo(value = value if len(parts) == 3 else RELEASES[series])

release_flag = rule(
    implementation = _release_flag_impl,
    build_setting = config.string(flag = True),
    doc = "The release whose callers the library serves, `0.11` or `0.11.1`.",
)

def _suffix_flag_impl(ctx):
    value = ctx.build_setting_value
    for character in value.elems():
        if not (character.isalnum() or character == "_"):
            fail("%s=%s: a suffix of C++ names holds letters, digits and underscores only." % (ctx.label.name, value))
    return BuildSettingInfo(value = value)

suffix_flag = rule(
    implementation = _suffix_flag_impl,
    build_setting = config.string(flag = True),
    doc = "Is appended to the name of the namespace `aotriton`, so that two copies can live in one process.",
)

def _library_name(claim):
    return "libaotriton%s_v2.so" % claim.suffix

def _claim_impl(ctx):
    claim = ClaimInfo(
        release = ctx.attr.release[BuildSettingInfo].value,
        suffix = ctx.attr.suffix[BuildSettingInfo].value,
    )
    soname = _library_name(claim) + "." + claim.release
    return [claim, platform_common.TemplateVariableInfo({"AOTRITON_SONAME": soname})]

claim = rule(
    implementation = _claim_impl,
    attrs = {
        "release": attr.label(mandatory = True, providers = [BuildSettingInfo], doc = "A release_flag."),
        "suffix": attr.label(mandatory = True, providers = [BuildSettingInfo], doc = "A suffix_flag."),
    },
    doc = "Both flags as one target. As a toolchain it gives the Make variable `AOTRITON_SONAME`.",
)

def _claim_file_impl(ctx):
    claim = ctx.attr._claim[ClaimInfo]
    major, minor, patch = claim.release.split(".")
    ctx.actions.expand_template(
        template = ctx.file.template,
        output = ctx.outputs.out,
        substitutions = {
            "@ENABLE_SUFFIX@": "1" if claim.suffix else "0",
            "@LIBRARY@": _library_name(claim),
            "@MAJOR@": major,
            "@MINOR@": minor,
            "@PATCH@": patch,
            "@SUFFIX@": claim.suffix,
            "@VERSION@": claim.release,
        },
    )

claim_file = rule(
    implementation = _claim_file_impl,
    attrs = {
        "out": attr.output(mandatory = True),
        "template": attr.label(mandatory = True, allow_single_file = True, doc = "Holds words like `@VERSION@`."),
        "_claim": attr.label(default = "//:claim"),
    },
    doc = "A file that says what the build claims to be.",
)

def _named_library_impl(ctx):
    name = ctx.attr.folder + _library_name(ctx.attr._claim[ClaimInfo])
    library = ctx.actions.declare_file("%s.%s" % (name, ctx.attr._claim[ClaimInfo].release))
    link = ctx.actions.declare_file(name)
    ctx.actions.run_shell(
        mnemonic = "NameLibrary",
        command = 'cp "$1" "$2" && ln -s "${2##*/}" "$3"',
        arguments = [ctx.file.library.path, library.path, link.path],
        inputs = [ctx.file.library],
        outputs = [library, link],
    )
    return [
        DefaultInfo(files = depset([library, link])),
        OutputGroupInfo(versioned = depset([library])),
    ]

named_library = rule(
    implementation = _named_library_impl,
    attrs = {
        "folder": attr.string(doc = "Where the files lie in the package, with a slash at its end."),
        "library": attr.label(mandatory = True, allow_single_file = True),
        "_claim": attr.label(default = "//:claim"),
    },
    doc = "`library` under its SONAME (output group `versioned`), and the link to it that has no version.",
)

_RELEASE = str(Label("//:release"))
_SUFFIX = str(Label("//:namespace_suffix"))

_as_claimed = transition(
    implementation = lambda _settings, attr: {_RELEASE: attr.release, _SUFFIX: attr.suffix},
    inputs = [],
    outputs = [_RELEASE, _SUFFIX],
)

_as_by_default = transition(
    implementation = lambda _settings, _attr: {_RELEASE: DEFAULT_RELEASE, _SUFFIX: ""},
    inputs = [],
    outputs = [_RELEASE, _SUFFIX],
)

def _unclaimed_impl(ctx):
    return [cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])]

unclaimed = rule(
    implementation = _unclaimed_impl,
    attrs = {
        "deps": attr.label_list(mandatory = True, cfg = _as_by_default, providers = [CcInfo]),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
    doc = "C++ code that is the same whatever is claimed, compiled once for all claims.",
)

def _claimed_impl(ctx):
    files = ctx.files.srcs
    return [
        DefaultInfo(files = depset(files), runfiles = ctx.runfiles(files)),
        cc_common.merge_cc_infos(cc_infos = [src[CcInfo] for src in ctx.attr.srcs if CcInfo in src]),
    ]

claimed = rule(
    implementation = _claimed_impl,
    attrs = {
        "release": attr.string(mandatory = True, doc = "As of --//:release."),
        "srcs": attr.label_list(mandatory = True, cfg = _as_claimed, doc = "Any targets; C++ ones can be linked through this."),
        "suffix": attr.string(doc = "As of --//:namespace_suffix."),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
    doc = "Targets that make a claim of their own, whatever the build claims.",
)
