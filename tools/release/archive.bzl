"""archive: files of several targets, moved to where they belong, in one .tar.gz."""

def _archive_impl(ctx):
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add("--out", ctx.outputs.out)
    args.add("--root", ctx.attr.root)
    files = []
    for target, place in ctx.attr.files.items():
        strip, _, prefix = place.partition("=>")
        for file in target[DefaultInfo].files.to_list():
            if not file.short_path.startswith(strip):
                fail("%s: %s does not start with %s" % (ctx.label, file.short_path, strip))
            args.add(file, format = prefix + file.short_path[len(strip):] + "=%s")
            files.append(file)
    ctx.actions.run(
        mnemonic = "Archive",
        executable = ctx.executable._tool,
        arguments = [args],
        inputs = files,
        outputs = [ctx.outputs.out],
    )

archive = rule(
    implementation = _archive_impl,
    attrs = {
        "files": attr.label_keyed_string_dict(
            mandatory = True,
            allow_files = True,
            doc = "target -> `strip=>prefix`: the path of each file loses `strip` and gets `prefix`.",
        ),
        "out": attr.output(mandatory = True, doc = "The archive."),
        "root": attr.string(mandatory = True, doc = "The one directory that it unpacks to."),
        "_tool": attr.label(default = "//tools/release:archive", executable = True, cfg = "exec"),
    },
    doc = "A .tar.gz whose bytes depend on nothing but the names and contents of its files.",
)
