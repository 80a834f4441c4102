"""Fuzz targets that are libFuzzer programs under --config=fuzz and tests otherwise."""

def encoded_protos(name, srcs, message, proto, proto_srcs, trailer = ""):
    """Corpus files from text protos.

    Args:
      name: of the filegroup of the encoded files.
      srcs: files <x>.textproto; corpus files are <x>.pb beside them.
      message: full name of their message.
      proto: path of the .proto file that has it.
      proto_srcs: target of that file and all that it imports.
      trailer: what follows the message, as printf's format.
    """
    outs = [src[:-len(".textproto")] + ".pb" for src in srcs]
    for src, out in zip(srcs, outs):
        native.genrule(
            name = name + "_" + out.replace("/", "_"),
            srcs = [src, proto_srcs],
            outs = [out],
            cmd = "/usr/bin/protoc -I. --encode=%s %s < $(location %s) > $@ && printf '%s' >> $@" %
                  (message, proto, src, trailer.replace("\\", "\\\\")),
        )
    native.filegroup(
        name = name,
        srcs = outs,
    )

def fuzz_target(format, corpus, deps):
    """<format>_fuzzer, the program, and <format>_fuzzer_test, which runs the corpus and mutations of it.

    Args:
      format: what is decoded. <format>_fuzzer.cc defines LLVMFuzzerTestOneInput, and most of the corpus is in
        corpus/<format>, to which libFuzzer adds what it finds.
      corpus: the corpus' files, or targets of them.
      deps: what <format>_fuzzer.cc needs.
    """
    name = format + "_fuzzer"
    native.cc_library(
        name = name + "_entry",
        testonly = True,
        srcs = [name + ".cc"],
        alwayslink = True,
        linkstatic = True,
        deps = deps + [":fuzz_target"],
    )
    native.cc_binary(
        name = name,
        testonly = True,
        args = [native.package_name() + "/corpus/" + format],
        data = corpus,
        linkopts = select({
            ":libfuzzer": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        deps = [":" + name + "_entry"] + select({
            ":libfuzzer": ["//third_party/sanitizers:suppressions"],
            "//conditions:default": [":driver"],
        }),
    )
    native.cc_test(
        name = name + "_test",
        # Those that write files take longer on a busy disk.
        size = "medium",
        args = ["$(locations %s)" % target for target in corpus],
        data = corpus,
        deps = [
            ":" + name + "_entry",
            ":driver",
        ],
    )
