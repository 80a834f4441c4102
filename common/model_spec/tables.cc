#include "common/model_spec/tables.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/model_spec.h"

namespace rubato {
namespace {

constexpr uint64_t kLeastMemory = uint64_t{1} << 20, kMostMemory = uint64_t{1} << 36;
constexpr uint32_t kMostShards = 256;
constexpr uint32_t kMostAdmitAfter = 255;
constexpr uint64_t kFewestCounters = uint64_t{1} << 14, kMostCounters = uint64_t{1} << 32;
constexpr uint64_t kFewestRows = 256;
constexpr uint64_t kMostSteps = uint64_t{1} << 31;

// Which of the fields that belong to algorithms each of them takes.
bool TakesEpsilon(v1::TableConfig::Algorithm algorithm) {
  return algorithm == v1::TableConfig::ADAGRAD || algorithm == v1::TableConfig::ROW_WISE_ADAGRAD ||
         algorithm == v1::TableConfig::LAZY_ADAM;
}
bool TakesBetas(v1::TableConfig::Algorithm algorithm) { return algorithm == v1::TableConfig::LAZY_ADAM; }
bool IsFtrl(v1::TableConfig::Algorithm algorithm) { return algorithm == v1::TableConfig::FTRL; }

}  // namespace

void FillTableDefaults(google::protobuf::RepeatedPtrField<v1::TableConfig>* tables) {
  for (v1::TableConfig& table : *tables) {
    const v1::TableConfig::Algorithm algorithm = table.algorithm();
    if (!table.has_keys_per_example()) table.set_keys_per_example(1);
    if (!table.has_initial_bound()) {
      const auto dimension = static_cast<double>(table.dimension());
      table.set_initial_bound(IsFtrl(algorithm) || dimension < 1 ? 0 : 1 / std::sqrt(dimension));
    }
    if (TakesEpsilon(algorithm) && !table.has_epsilon()) table.set_epsilon(1e-8);
    if (TakesBetas(algorithm) && !table.has_beta1()) table.set_beta1(0.9);
    if (TakesBetas(algorithm) && !table.has_beta2()) table.set_beta2(0.999);
    if (IsFtrl(algorithm) && !table.has_beta()) table.set_beta(1);
    if (!table.has_shards()) table.set_shards(64);
    if (!table.has_memory_bytes()) table.set_memory_bytes(uint64_t{1} << 33);
    if (!table.has_admit_after()) table.set_admit_after(1);
    if (table.admit_after() > 1 && !table.has_admission_counters()) table.set_admission_counters(uint64_t{1} << 22);
    if (!table.has_precision()) table.set_precision(v1::TableConfig::FLOAT32);
  }
}

void CheckTable(const v1::TableConfig& table,
                const std::function<void(absl::string_view field, absl::string_view what)>& error) {
  const auto check = [&](absl::string_view field, auto value, bool good, absl::string_view allowed) {
    if (!good) error(field, absl::StrCat("value ", value, "; allowed: ", allowed));
  };
  const v1::TableConfig::Algorithm algorithm = table.algorithm();
  check("dimension", table.dimension(), table.dimension() >= 1 && table.dimension() <= 4096, "1 to 4096");
  check("keys_per_example", table.keys_per_example(), table.keys_per_example() >= 1 && table.keys_per_example() <= 4096,
        "1 to 4096");
  const bool known =
      v1::TableConfig::Algorithm_IsValid(algorithm) && algorithm != v1::TableConfig::ALGORITHM_UNSPECIFIED;
  check("algorithm", static_cast<int>(algorithm), known, "SGD, ADAGRAD, ROW_WISE_ADAGRAD, LAZY_ADAM, FTRL");
  // Written so that NaN is refused.
  const auto is_positive = [](double value) { return value > 0 && std::isfinite(value); };
  const auto is_not_negative = [](double value) { return value >= 0 && std::isfinite(value); };
  check("learning_rate", table.learning_rate(), is_positive(table.learning_rate()), "a number > 0");
  const double bound = table.initial_bound();
  check("initial_bound", bound, IsFtrl(algorithm) ? bound == 0 : is_not_negative(bound),
        IsFtrl(algorithm) ? "0 with FTRL, which has weights from its state alone" : "a number >= 0");
  if (TakesEpsilon(algorithm)) {
    check("epsilon", table.epsilon(), is_positive(table.epsilon()), "a number > 0");
  } else {
    check("epsilon", table.epsilon(), !table.has_epsilon(), "absent with this algorithm");
  }
  const auto check_beta = [&](absl::string_view field, bool has, double beta) {
    if (TakesBetas(algorithm)) {
      check(field, beta, beta >= 0 && beta < 1, "0 or more, under 1");
    } else {
      check(field, beta, !has, "absent unless the algorithm is LAZY_ADAM");
    }
  };
  check_beta("beta1", table.has_beta1(), table.beta1());
  check_beta("beta2", table.has_beta2(), table.beta2());
  const auto check_ftrl = [&](absl::string_view field, bool has, double value) {
    if (IsFtrl(algorithm)) {
      check(field, value, is_not_negative(value), "a number >= 0");
    } else {
      check(field, value, !has, "absent unless the algorithm is FTRL");
    }
  };
  check_ftrl("beta", table.has_beta(), table.beta());
  check_ftrl("l1", table.l1() != 0, table.l1());
  check_ftrl("l2", table.l2() != 0, table.l2());
  const uint32_t shards = table.shards();
  check("shards", shards, shards >= 1 && shards <= kMostShards && (shards & (shards - 1)) == 0,
        "a power of two, 1 to 256");
  const bool combines =
      !table.has_combine() || (v1::TableConfig::Combine_IsValid(table.combine()) && table.combine() != 0);
  check("combine", static_cast<int>(table.combine()), combines, "SUM, MEAN, SQRT_N, or absent");
  check("memory_bytes", table.memory_bytes(),
        table.memory_bytes() >= kLeastMemory && table.memory_bytes() <= kMostMemory,
        "1048576 (1 MiB) to 68719476736 (64 GiB)");
  check("admit_after", table.admit_after(), table.admit_after() >= 1 && table.admit_after() <= kMostAdmitAfter,
        absl::StrCat("1 to ", kMostAdmitAfter));
  const uint64_t counters = table.admission_counters();
  if (table.admit_after() > 1) {
    check("admission_counters", counters,
          counters >= kFewestCounters && counters <= kMostCounters && (counters & (counters - 1)) == 0,
          "a power of two, 16384 to 4294967296");
  } else {
    check("admission_counters", counters, !table.has_admission_counters(), "absent unless admit_after is over 1");
  }
  check("expire_after_steps", table.expire_after_steps(), table.expire_after_steps() <= kMostSteps,
        absl::StrCat("0 (never) to ", kMostSteps));
  check("most_rows", table.most_rows(), table.most_rows() == 0 || table.most_rows() >= kFewestRows,
        absl::StrCat("0 (no limit), or ", kFewestRows, " or more"));
  check("precision", static_cast<int>(table.precision()),
        table.precision() == v1::TableConfig::FLOAT32 || table.precision() == v1::TableConfig::BF16, "FLOAT32, BF16");
  const auto check_codec = [&](absl::string_view field, v1::Codec codec) {
    const bool good = codec == v1::CODEC_UNSPECIFIED || codec == v1::NONE || codec == v1::BF16;
    check(field, v1::Codec_IsValid(codec) ? v1::Codec_Name(codec) : absl::StrCat(static_cast<int>(codec)), good,
          "NONE, BF16");
  };
  check_codec("push", table.push());
  check_codec("pull", table.pull());
}

}  // namespace rubato
