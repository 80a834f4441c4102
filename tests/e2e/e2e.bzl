"""Tests that start whole jobs."""

def e2e_test(name, data = []):
    """<name>.sh, run alone, with all programs at hand.

    Args:
      name: of the test and of its script.
      data: what it needs besides.
    """
    native.sh_test(
        name = name,
        size = "medium",
        # For machines on which a job takes four times as long as usual (common.sh).
        timeout = "long",
        srcs = [name + ".sh"],
        data = data + [
            "common.sh",
            "//cli/command:rubato",
            "//configs",
            "//coordinator",
            "//server",
            "//tests:skip.sh",
            "//worker",
        ],
        tags = ["exclusive"],
    )
