"""Libraries of rules that have mutants (common/mutants.h)."""

WITH_MUTANTS = ["RUBATO_WITH_MUTANTS"]

def _with_mutants(label):
    if ":" in label:
        return label + "_with_mutants"
    return label + ":" + label.split("/")[-1] + "_with_mutants"

def library_with_mutants(name, deps = [], mutated_deps = [], visibility = None, **kwargs):
    """A cc_library, and NAME_with_mutants: the same sources built so that a mutant can be chosen when they run.

    Whoever depends on the one must not depend on the other: a library that depends on one with mutants, and is to be
    linked with its mutants, is a library_with_mutants too.

    Args:
      name: the library's name.
      deps: as usual.
      mutated_deps: more of deps, those that are library_with_mutants.
      visibility: as usual, of both.
      **kwargs: as usual.
    """
    native.cc_library(
        name = name,
        visibility = visibility,
        deps = deps + mutated_deps,
        **kwargs
    )
    native.cc_library(
        name = name + "_with_mutants",
        testonly = True,
        local_defines = WITH_MUTANTS,
        visibility = visibility,
        deps = deps + [_with_mutants(dep) for dep in mutated_deps],
        **kwargs
    )
