"""The simulation, linked with the rules of servers and coordinator or with broken ones."""

SRCS = [
    "control_link.cc",
    "control_link.h",
    "coordinator_host.cc",
    "coordinator_host.h",
    "run_simulation.cc",
    "server_directory.h",
    "sim_evaluator.cc",
    "sim_evaluator.h",
    "sim_server.cc",
    "sim_server.h",
    "sim_worker.cc",
    "sim_worker.h",
    "simulation.cc",
]

def simulation_library(
        name,
        rules = "//server/rules",
        coordinator = "//coordinator/rules:coordinator_core",
        **kwargs):
    """RunOnce and RunSimulation of these targets of server/rules and coordinator/rules."""
    native.cc_library(
        name = name,
        srcs = SRCS,
        hdrs = [
            "run_simulation.h",
            "simulation.h",
        ],
        deps = [
            ":environment",
            "//common:clock",
            "//common:random",
            "//common:status",
            "//common:task",
            "//coordinator/rules:action",
            "//proto:coordinator_proto",
            "//proto:journal_proto",
            "//proto:update_log_proto",
            "//third_party/system:absl",
            "//worker/ps_client:step_machine",
            coordinator,
            rules,
        ],
        **kwargs
    )

def simulation_test(name, srcs, simulation = ":simulation", deps = [], **kwargs):
    """A test of `simulation`."""
    native.cc_test(
        name = name,
        size = "small",
        srcs = srcs,
        deps = [
            simulation,
            "//third_party/system:absl",
            "//third_party/system:gtest_main",
        ] + deps,
        **kwargs
    )

def broken_rules_test(fault, invariant, **rules):
    """broken_<fault>_test: that the simulation of `rules`, which have this fault, finds the invariant violated."""
    simulation_library(
        name = "simulation_broken_" + fault,
        testonly = True,
        visibility = ["//visibility:private"],
        **rules
    )
    simulation_test(
        name = "broken_" + fault + "_test",
        srcs = ["broken_rules_test.cc"],
        local_defines = ['RUBATO_BROKEN_INVARIANT=\\"' + invariant + '\\"'],
        simulation = ":simulation_broken_" + fault,
    )
