"""Targets of tests."""

def unit_test(name, deps = [], size = "small"):
    """A cc_test of NAME.cc with GoogleTest's main.

    Args:
      name: the test's name.
      deps: beside GoogleTest.
      size: as usual; how long it may take.
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"],
        deps = deps + ["//third_party/system:gtest_main"],
    )
