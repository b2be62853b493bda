"""embedded_packs: packs as a part of a library, which then needs no files."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//toolchains/cc:copts.bzl", "COPTS")

def _embedded_packs_source_impl(ctx):
    blobs, declarations, rows = [], [], []
    for index, pack in enumerate(ctx.files.packs):
        symbol = "aotriton_embedded_pack_%d" % index

        # <vendor>-<arch or family>/<family>/<kernel>.pack
        path = "/".join(pack.path.split("/")[-3:])
        blobs.append('    ".balign 64\\n%s: .incbin \\"%s\\"\\n%s_end:\\n"' % (symbol, pack.path, symbol))
        declarations.append("HIDDEN extern const unsigned char %s[], %s_end[];" % (symbol, symbol))
        rows.append('    {"%s", %s, %s_end},' % (path, symbol, symbol))
    if not rows:
        fail("%s: there is no pack to embed" % ctx.label)
    source = ctx.actions.declare_file(ctx.label.name + ".cc")
    ctx.actions.write(source, "\n".join(
        [
            "// Generated from %s." % ctx.label,
            '#include "dispatcher/images.h"',
            "",
            "// The assembler copies the files; their labels are not seen outside of this file.",
            "asm(",
            '    ".section .rodata\\n"',
        ] + blobs + [
            '    ".previous\\n");',
            "",
            '#define HIDDEN __attribute__((visibility("hidden")))',
            'extern "C" {',
        ] + declarations + [
            "}",
            "",
            "namespace aotriton::dispatcher {",
            "namespace {",
            "",
            "const EmbeddedPack kPacks[] = {",
        ] + rows + [
            "};",
            "",
            "const struct OnLoad {",
            "  OnLoad() { SetEmbeddedPacks(kPacks, sizeof(kPacks) / sizeof(kPacks[0])); }",
            "} on_load;",
            "",
            "}  // namespace",
            "}  // namespace aotriton::dispatcher",
            "",
        ],
    ))
    return [DefaultInfo(files = depset([source]))]

_embedded_packs_source = rule(
    implementation = _embedded_packs_source_impl,
    attrs = {"packs": attr.label_list(mandatory = True, allow_files = [".pack"], doc = "The files.")},
    doc = "A C++ file that holds packs.",
)

def embedded_packs(name, packs, **kwargs):
    """A cc_library that makes packs a part of what it is linked into.

    Args:
      name: of the library.
      packs: list of labels of pack files.
      **kwargs: of both targets, e.g. target_compatible_with.
    """
    _embedded_packs_source(
        name = name + "_source",
        packs = packs,
        **kwargs
    )
    cc_library(
        name = name,
        srcs = [name + "_source"],
        additional_compiler_inputs = packs,
        copts = COPTS,
        linkstatic = True,  # its symbols are hidden
        deps = [Label("//api:dispatcher")],
        alwayslink = True,  # nothing asks for it by name
        **kwargs
    )
