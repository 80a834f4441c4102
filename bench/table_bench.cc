// How many rows of an embedding table a core reads and updates in a second, beside absl::flat_hash_map with rows in an
// array of their own: the same keys in the same order, prefetched by the same distance, in memory of large pages, and
// updated by the same loop, in turns. Then what the table's growth and memory cost.
//
//   bazel run //bench:table_bench -- --keys=10000000 --dimension=16

#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "bench/bench_output.h"
#include "bench/bench_timing.h"
#include "bench/key_draws.h"
#include "common/clock.h"
#include "common/random.h"
#include "server/tables/row_loops.h"
#include "server/tables/table.h"

namespace rubato::bench {
namespace {

using server::RowFormula;
using server::RowRule;
using server::Table;
using server::TableOptions;

struct Flags {
  int64_t keys = 10'000'000;
  int dimension = 16;
  // Draws of a batch; fewer keys with Zipf's distribution, as keys that come again are merged.
  int64_t batch = 8192;
  int batches = 64;
  int rounds = 11;
  double zipf = 1.05;
};

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << status << std::endl;
  std::exit(1);
}

// As the table's memory.
template <typename T>
struct LargePages {
  using value_type = T;
  static constexpr size_t kPage = size_t{2} << 20;

  LargePages() = default;
  template <typename U>
  LargePages(const LargePages<U>&) {}  // NOLINT: as allocators are.

  T* allocate(size_t count) {
    const size_t bytes = (count * sizeof(T) + kPage - 1) / kPage * kPage;
    void* const memory = std::aligned_alloc(kPage, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { std::free(memory); }
  friend bool operator==(const LargePages&, const LargePages&) { return true; }
};

// The usual table: a hash map to the numbers of rows.
class MapTable {
 public:
  MapTable(int64_t keys, int dimension) : dimension_(dimension), stride_((2 * dimension + 15) / 16 * 16) {
    rows_.reserve(keys * stride_);
  }

  void Insert(uint64_t key) {
    map_.emplace(key, static_cast<uint32_t>(map_.size()));
    rows_.resize(map_.size() * stride_);
  }

  void Lookup(const std::vector<uint64_t>& keys, float* weights) const {
    InThreeStages(
        keys, dimension_, [&](size_t i, float* row) __attribute__((always_inline)) {
          std::memcpy(weights + dimension_ * i, row, sizeof(float) * dimension_);
        });
  }

  // As the table's loop, for the widest vectors that it uses.
  RUBATO_TARGET_AVX2 void Apply(const RowRule& rule, const std::vector<uint64_t>& keys, const float* gradients) {
    InThreeStages(
        keys, stride_, [&](size_t i, float* row) __attribute__((always_inline)) {
          server::row_loops::UpdateRow<RowFormula::kAdaGrad, float>(rule, gradients + dimension_ * i, 1.0f, /*draw=*/0,
                                                                    reinterpret_cast<char*>(row),
                                                                    static_cast<int>(dimension_));
        });
  }

 private:
  static constexpr size_t kAhead = 22, kRing = 32;

  template <typename Use>
  RUBATO_KERNEL_BODY void InThreeStages(const std::vector<uint64_t>& keys, size_t fetched, const Use& use) const {
    float* pending[kRing];
    for (size_t i = 0; i < keys.size() + 2 * kAhead; ++i) {
      if (i < keys.size()) map_.prefetch(keys[i]);
      if (i >= kAhead && i - kAhead < keys.size()) {
        float* const row = const_cast<float*>(rows_.data()) + stride_ * map_.find(keys[i - kAhead])->second;
        for (size_t at = 0; at < fetched; at += 16) __builtin_prefetch(row + at);
        pending[(i - kAhead) % kRing] = row;
      }
      if (i >= 2 * kAhead) use(i - 2 * kAhead, pending[(i - 2 * kAhead) % kRing]);
    }
  }

  const size_t dimension_, stride_;
  absl::flat_hash_map<uint64_t, uint32_t, absl::Hash<uint64_t>, std::equal_to<uint64_t>,
                      LargePages<std::pair<const uint64_t, uint32_t>>>
      map_;
  std::vector<float, LargePages<float>> rows_;
};

template <typename Next>
std::vector<std::vector<uint64_t>> Batches(const Flags& flags, const Table& table, const Next& next) {
  std::vector<std::vector<uint64_t>> batches(flags.batches);
  for (std::vector<uint64_t>& batch : batches) {
    for (int64_t i = 0; i < flags.batch; ++i) batch.push_back(KeyAt(next()));
    SortByHash(table.hash(), batch);
  }
  return batches;
}

double Quantile(std::vector<double> values, double part) {
  const auto at = static_cast<ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[at];
}

// Seconds of processor time of each call that adds a few keys. `add(keys)`.
template <typename Add>
std::vector<double> Grow(const Flags& flags, const Table& order, const Add& add) {
  constexpr int64_t kTogether = 64;
  std::vector<double> seconds;
  for (int64_t first = 0; first < flags.keys; first += kTogether) {
    std::vector<uint64_t> keys;
    for (int64_t i = first; i < std::min(first + kTogether, flags.keys); ++i) keys.push_back(KeyAt(i));
    SortByHash(order.hash(), keys);
    const absl::Duration begin = ThreadCpuTime();
    add(keys);
    seconds.push_back(absl::ToDoubleSeconds(ThreadCpuTime() - begin));
  }
  return seconds;
}

BenchCase GrowthCase(const std::string& name, const std::vector<double>& seconds) {
  double sum = 0;
  for (const double value : seconds) sum += value;
  return {name,
          {{"mean_us", 1e6 * sum / static_cast<double>(seconds.size())},
           {"p99_9_ms", 1e3 * Quantile(seconds, 0.999)},
           {"most_ms", 1e3 * Quantile(seconds, 1)}}};
}

// A virtual machine's memory is slow where nobody has used it before. That is no property of a table.
void TouchMemory(const Flags& flags) {
  const size_t bytes = 5 * sizeof(float) * flags.dimension * flags.keys;
  std::vector<char, LargePages<char>> memory(bytes);
  volatile char* const data = memory.data();
  for (size_t at = 0; at < bytes; at += 4096) data[at] = 1;
}

void Run(const Flags& flags) {
  TouchMemory(flags);
  TableOptions options = {.name = "bench",
                          .dimension = flags.dimension,
                          .formula = RowFormula::kAdaGrad,
                          .initial_bound = 0.1f,
                          .seed = 1,
                          .secret = 2,
                          .memory_bytes = Table::kMostMemory};
  const auto make = [&options] {
    absl::StatusOr<std::unique_ptr<Table>> made = Table::Create(options);
    Require(made.status());
    return *std::move(made);
  };
  const std::unique_ptr<Table> owned_table = make();
  Table& table = *owned_table;
  options.is_bf16 = true;
  const std::unique_ptr<Table> halves = make();
  options.is_bf16 = false;
  // One that asks whether keys are admitted, and notes steps; every key of the benchmark has a row, and none is
  // removed.
  options.admit_after = 2;
  options.admission_counters = uint64_t{1} << 22;
  options.expire_after = uint64_t{1} << 31;
  const std::unique_ptr<Table> choosy = make();
  MapTable map(flags.keys, flags.dimension);
  const RowRule rule = {.update = {.learning_rate = 0.01f, .epsilon = 1e-8f}};
  const std::vector<float> gradients = NormalValues(flags.batch * flags.dimension, 3);
  std::vector<float> weights(flags.batch * flags.dimension);

  // Values of the map's rows are left at 0: nothing is slower for it.
  const std::vector<double> table_growth =
      Grow(flags, table, [&](const auto& keys) { Require(table.Apply(rule, keys, gradients.data(), 1)); });
  const std::vector<double> map_growth = Grow(flags, table, [&](const auto& keys) {
    for (const uint64_t key : keys) map.Insert(key);
  });
  (void)Grow(flags, *choosy, [&](const auto& keys) {
    for (int push = 0; push < 2; ++push) Require(choosy->Apply(rule, keys, gradients.data(), 1));
  });
  (void)Grow(flags, *halves, [&](const auto& keys) { Require(halves->Apply(rule, keys, gradients.data(), 1)); });
  PrintCases({GrowthCase("table: 64 new keys", table_growth), GrowthCase("flat_hash_map: 64 new keys", map_growth)});

  const auto memory_case = [](const std::string& name, const Table& of) {
    const auto row_bytes = static_cast<double>(of.row_bytes() * of.rows());
    return BenchCase{name,
                     {{"rows", static_cast<double>(of.rows())},
                      {"row_bytes", static_cast<double>(of.row_bytes())},
                      {"bytes_over_rows_bytes", static_cast<double>(of.memory_bytes()) / row_bytes}}};
  };
  PrintCases({memory_case("memory", table), memory_case("memory, bf16", *halves)});

  std::vector<BenchCase> cases;
  for (const bool skewed : {false, true}) {
    Random random(4);
    Zipf zipf(flags.keys, flags.zipf, 5);
    const std::vector<std::vector<uint64_t>> batches =
        Batches(flags, table, [&] { return skewed ? zipf.Next() : static_cast<int64_t>(random.Below(flags.keys)); });
    double keys = 0;
    for (const std::vector<uint64_t>& batch : batches) keys += static_cast<double>(batch.size());
    const auto each = [&](const auto& use) {
      return [&batches, use] {
        for (const std::vector<uint64_t>& batch : batches) use(batch);
      };
    };
    const auto add = [&](const std::string& name, const std::vector<std::vector<double>>& times) {
      cases.push_back({name + (skewed ? ", Zipf" : ", uniform"),
                       {{"keys_per_batch", keys / flags.batches},
                        {"rows_per_s", keys / Median(times[0])},
                        {"map_rows_per_s", keys / Median(times[1])},
                        {"ratio", MedianRatio(times[1], times[0])}}});
    };
    add("lookup", TimeInterleaved({each([&](const auto& batch) { Require(table.Lookup(batch, weights.data())); }),
                                   each([&](const auto& batch) { map.Lookup(batch, weights.data()); })},
                                  flags.rounds));
    add("adagrad",
        TimeInterleaved({each([&](const auto& batch) { Require(table.Apply(rule, batch, gradients.data(), 1)); }),
                         each([&](const auto& batch) { map.Apply(rule, batch, gradients.data()); })},
                        flags.rounds));
    add("lookup, bf16",
        TimeInterleaved({each([&](const auto& batch) { Require(halves->Lookup(batch, weights.data())); }),
                         each([&](const auto& batch) { map.Lookup(batch, weights.data()); })},
                        flags.rounds));
    add("adagrad, bf16",
        TimeInterleaved({each([&](const auto& batch) { Require(halves->Apply(rule, batch, gradients.data(), 1)); }),
                         each([&](const auto& batch) { map.Apply(rule, batch, gradients.data()); })},
                        flags.rounds));
    add("adagrad, with admission and expiry",
        TimeInterleaved({each([&](const auto& batch) { Require(choosy->Apply(rule, batch, gradients.data(), 1)); }),
                         each([&](const auto& batch) { map.Apply(rule, batch, gradients.data()); })},
                        flags.rounds));
  }
  PrintCases(cases);
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Rows of an embedding table a second, beside absl::flat_hash_map", "table_bench");
  app.add_option("--keys", flags.keys, "Rows of the table")
      ->check(CLI::Range(1000, 200'000'000))
      ->capture_default_str();
  app.add_option("--dimension", flags.dimension, "Weights of a row")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--batch", flags.batch, "Draws of a batch")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_option("--rounds", flags.rounds, "How often all batches are gone through")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  Run(flags);
  return 0;
}

}  // namespace
}  // namespace rubato::bench

int main(int argc, char** argv) { return rubato::bench::Main(argc, argv); }
