"""Rules that are broken on purpose."""

# By name: a block RUBATO_FAULT_<NAME> in the rules, and the invariant (docs/architecture.md) that it must break.
FAULTS = {
    "cut_holds_nothing": "I7",
    "cut_ignores_members": "I7",
    "deduper_forgets": "I3",
    "gate_off_by_one": "I2",
    "restore_forgets_version": "I7",
}
