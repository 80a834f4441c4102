// How close the optimizer's pass over memory comes to the memory's speed, on one core: 64 MiB of float32, against a
// plain loop over the same arrays in the same run.
//
//   bazel run //bench:apply_bench -- --isa=all --rounds=101

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/apply_loops.h"
#include "bench/bench_output.h"
#include "bench/bench_timing.h"
#include "bench/loop_bench.h"
#include "common/float_buffer.h"
#include "kernels/optimizer/compensate_and_apply.h"
#include "kernels/optimizer/compensation.h"
#include "kernels/optimizer/reduce_and_apply.h"
#include "kernels/optimizer/update_rule.h"

namespace rubato::bench {
namespace {

constexpr int64_t kElements = int64_t{1} << 24;

struct Case {
  const char* name;
  v1::OptimizerConfig::Algorithm algorithm;
  int contributions;
  // As a server does it: the new weights go to another buffer.
  bool apart;
  // One push, compensated for its staleness: the weights that it was computed from are read like a second gradient.
  std::optional<CompensationFormula> compensation = std::nullopt;
};

constexpr Case kCases[] = {
    {"sgd", v1::OptimizerConfig::SGD, 1, false},
    {"momentum", v1::OptimizerConfig::MOMENTUM, 1, false},
    {"adam", v1::OptimizerConfig::ADAM, 1, false},
    {"sgd_apart", v1::OptimizerConfig::SGD, 1, true},
    {"reduce8_sgd", v1::OptimizerConfig::SGD, 8, false},
    {"dc_asgd_apart", v1::OptimizerConfig::SGD, 2, true, CompensationFormula::kDelay},
    {"dc_asgd_adaptive_apart", v1::OptimizerConfig::SGD, 2, true, CompensationFormula::kAdaptiveDelay},
    {"gap_aware_apart", v1::OptimizerConfig::SGD, 2, true, CompensationFormula::kGap},
};

FloatBuffer::Ptr Normals(uint64_t seed) {
  FloatBuffer::Ptr buffer = FloatBuffer::Allocate(kElements);
  const std::vector<float> values = NormalValues(kElements, seed);
  std::copy(values.begin(), values.end(), buffer->data());
  return buffer;
}

// The arrays that all cases share.
struct Arrays {
  Arrays() {
    for (int k = 0; k < 8; ++k) gradients.push_back(Normals(k));
  }
  std::vector<FloatBuffer::Ptr> gradients;
  FloatBuffer::Ptr weights = Normals(100);
  FloatBuffer::Ptr other_weights = FloatBuffer::Allocate(kElements);
  FloatBuffer::Ptr slots[2] = {FloatBuffer::Allocate(kElements), FloatBuffer::Allocate(kElements)};
};

Streams StreamsOf(const Case& c, const Arrays& arrays) {
  Streams streams = {};
  streams.gradient_count = c.contributions;
  for (int k = 0; k < c.contributions; ++k) streams.gradients[k] = arrays.gradients[k]->data();
  streams.slot_count = NumSlots(c.algorithm) + (c.compensation ? NumSlots(*c.compensation) : 0);
  for (int k = 0; k < streams.slot_count; ++k) streams.slots[k] = arrays.slots[k]->data();
  streams.weights_in = arrays.weights->data();
  streams.weights_out = c.apart ? arrays.other_weights->data() : arrays.weights->data();
  streams.n = kElements;
  return streams;
}

// Each gradient is read, and weights and slots are read and written.
double BytesMoved(const Streams& streams) {
  return static_cast<double>(sizeof(float)) * streams.n * (streams.gradient_count + 2 + 2 * streams.slot_count);
}

void ApplyCompensated(Isa isa, const UpdateRule& rule, CompensationFormula formula, const Streams& streams) {
  const ByteSpan piece = BytesOf(streams.gradients[0], streams.n);
  CompensateAndApplyOn(isa, rule, {.formula = formula, .lambda = 1e-6f}, {.pieces = {&piece, 1}}, streams.gradients[1],
                       streams.weights_in, streams.weights_out, streams.slots, streams.slots, streams.n);
}

void Apply(Isa isa, const UpdateRule& rule, const Case& c, const Streams& streams) {
  if (c.compensation.has_value()) return ApplyCompensated(isa, rule, *c.compensation, streams);
  ByteSpan pieces[8];
  EncodedGradient gradients[8];
  for (int k = 0; k < streams.gradient_count; ++k) {
    pieces[k] = BytesOf(streams.gradients[k], streams.n);
    gradients[k] = {{&pieces[k], 1}, 1.0f / static_cast<float>(streams.gradient_count)};
  }
  ReduceAndApplyOn(isa, rule, gradients, streams.gradient_count, streams.weights_in, streams.weights_out, streams.slots,
                   streams.slots, streams.n);
}

void Run(const std::vector<Isa>& isas, int rounds) {
  const Arrays arrays;
  std::vector<BenchCase> cases;
  for (Isa isa : isas) {
    for (const Case& c : kCases) {
      v1::OptimizerConfig config;
      config.set_algorithm(c.algorithm);
      const UpdateRule rule = MakeUpdateRule(config, 1e-6, 1000, false);
      const Streams streams = StreamsOf(c, arrays);
      const std::vector<std::vector<double>> times =
          TimeInterleaved({[&] { Apply(isa, rule, c, streams); }, [&] { MoveStreams(isa, streams, 1e-9f); }}, rounds);
      const double seconds = Median(times[0]), bytes = BytesMoved(streams);
      cases.push_back({absl::StrCat(c.name, "/", IsaName(isa)),
                       {{"bytes", bytes},
                        {"seconds", seconds},
                        {"gb_per_s", bytes / seconds / 1e9},
                        {"reference_gb_per_s", bytes / Median(times[1]) / 1e9},
                        {"ratio", MedianRatio(times[1], times[0])}}});
    }
  }
  PrintCases(cases);
}

}  // namespace
}  // namespace rubato::bench

int main(int argc, char** argv) {
  return rubato::bench::LoopBenchMain(argc, argv,
                                      {"apply_bench", "Optimizer updates against the memory's speed", 61,
                                       rubato::ReduceAndApplyIsa(), rubato::bench::Run});
}
