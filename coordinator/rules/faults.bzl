"""Rules that are broken on purpose."""

# By name: a block RUBATO_FAULT_<NAME> in the parts of coordinator_core, and the invariant (docs/architecture.md) that it
# must break.
FAULTS = {
    "cut_before_all_parts": "I7",
    "rollback_forgets_generations": "I5",
}
