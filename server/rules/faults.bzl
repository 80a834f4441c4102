"""Rules that are broken on purpose."""

# By name: a block RUBATO_FAULT_<NAME> in the rules, and the invariant (docs/architecture.md) that it must break.
FAULTS = {
    "deduper_forgets": "I3",
    "gate_off_by_one": "I2",
}
