"""Static archives of the system's libraries, for binaries that need glibc alone."""

PROTOBUF_ARCHIVES = [
    "protobuf",
    "z",
]

# What `pkg-config --static --libs grpc++` lists on Debian 12.
GRPC_ARCHIVES = [
    "absl_bad_optional_access",
    "absl_bad_variant_access",
    "absl_base",
    "absl_city",
    "absl_civil_time",
    "absl_cord",
    "absl_cord_internal",
    "absl_cordz_functions",
    "absl_cordz_handle",
    "absl_cordz_info",
    "absl_debugging_internal",
    "absl_demangle_internal",
    "absl_exponential_biased",
    "absl_graphcycles_internal",
    "absl_hash",
    "absl_hashtablez_sampler",
    "absl_int128",
    "absl_log_severity",
    "absl_low_level_hash",
    "absl_malloc_internal",
    "absl_random_distributions",
    "absl_random_internal_platform",
    "absl_random_internal_pool_urbg",
    "absl_random_internal_randen",
    "absl_random_internal_randen_hwaes",
    "absl_random_internal_randen_hwaes_impl",
    "absl_random_internal_randen_slow",
    "absl_random_internal_seed_material",
    "absl_random_seed_gen_exception",
    "absl_random_seed_sequences",
    "absl_raw_hash_set",
    "absl_raw_logging_internal",
    "absl_spinlock_wait",
    "absl_stacktrace",
    "absl_status",
    "absl_statusor",
    "absl_str_format_internal",
    "absl_strerror",
    "absl_strings",
    "absl_strings_internal",
    "absl_symbolize",
    "absl_synchronization",
    "absl_throw_delegate",
    "absl_time",
    "absl_time_zone",
    "address_sorting",
    "cares",
    "crypto",
    "gpr",
    "grpc",
    "grpc++",
    "re2",
    "ssl",
    "upb",
    "z",
]

def static_group(names):
    """Link flags that take the static archives of `names` and resolve references among them.

    Args:
      names: library names without prefix and suffix.

    Returns:
      the link flags.
    """
    flags = ["-l" + name for name in names]
    return ["-Wl,-Bstatic", "-Wl,--start-group"] + flags + [
        "-Wl,--end-group",
        "-Wl,-Bdynamic",
    ]
