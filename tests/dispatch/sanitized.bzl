"""sanitized_test: a cc_test once more, with all its code built for a sanitizer."""

_OPTIONS = {
    # Undefined behaviour is the end, as an invalid access is; leaks are looked for at exit.
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
}

def _sanitizer_impl(settings, attr):
    options = _OPTIONS[attr.sanitizer]
    return {
        "//command_line_option:copt": settings["//command_line_option:copt"] + options + ["-fno-omit-frame-pointer", "-g1"],
        "//command_line_option:linkopt": settings["//command_line_option:linkopt"] + options,
    }

_sanitizer = transition(
    implementation = _sanitizer_impl,
    inputs = ["//command_line_option:copt", "//command_line_option:linkopt"],
    outputs = ["//command_line_option:copt", "//command_line_option:linkopt"],
)

def _sanitized_test_impl(ctx):
    test = ctx.attr.test[0]
    program = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = program, target_file = test[DefaultInfo].files_to_run.executable, is_executable = True)
    providers = [DefaultInfo(executable = program, runfiles = test[DefaultInfo].default_runfiles)]
    return providers + ([test[RunEnvironmentInfo]] if RunEnvironmentInfo in test else [])

sanitized_test = rule(
    implementation = _sanitized_test_impl,
    attrs = {
        "sanitizer": attr.string(mandatory = True, values = _OPTIONS.keys(), doc = "address (with undefined behaviour and leaks) or thread."),
        "test": attr.label(mandatory = True, cfg = _sanitizer, doc = "A cc_test."),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
    doc = "Runs `test` built with a sanitizer. `args` of the test are not passed on.",
    test = True,
)
