"""Targets of tests."""

def unit_test(name, deps = [], data = [], size = "small"):
    """A cc_test of NAME.cc with GoogleTest's main.

    Args:
      name: the test's name.
      deps: beside GoogleTest.
      data: files that it reads and programs that it starts.
      size: as usual; how long it may take.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"],
        data = data,
        deps = deps + ["//third_party/system:gtest_main"],
    )
