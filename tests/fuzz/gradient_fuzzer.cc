// Gradients as they come from the wire, through every codec, into every update rule: bytes that are accepted decode to
// the same floats in pieces as whole, are judged finite as they are, and change the weights as those floats would.
//
// Input: the encoded gradient, then 6 bytes: how many elements there are (2 bytes), the codec, the algorithm, and where
// an uncompressed gradient is cut (2 bytes).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/optimizer_traits.h"
#include "kernels/codec/codec.h"
#include "kernels/optimizer/encoded_gradient.h"
#include "kernels/optimizer/reduce_and_apply.h"
#include "kernels/optimizer/update_rule.h"
#include "tests/fuzz/fuzz_target.h"

namespace rubato {
namespace {

constexpr int64_t kElementsMax = 1500;
constexpr int64_t kBlock = 256;  // DecodeRange begins at multiples of it.
// Those of one update without a norm of the whole tensor.
constexpr v1::OptimizerConfig::Algorithm kAlgorithms[] = {
    v1::OptimizerConfig::SGD,     v1::OptimizerConfig::MOMENTUM, v1::OptimizerConfig::NESTEROV,
    v1::OptimizerConfig::ADAGRAD, v1::OptimizerConfig::RMSPROP,  v1::OptimizerConfig::ADAM,
    v1::OptimizerConfig::ADAMW,   v1::OptimizerConfig::MEAN,
};

struct State {
  std::vector<float> weights;
  std::vector<std::vector<float>> slots;

  bool Same(const State& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    if (!same(weights, other.weights)) return false;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (!same(slots[i], other.slots[i])) return false;
    }
    return true;
  }
};

// After one update of weights of which nothing is zero.
State Updated(v1::OptimizerConfig::Algorithm algorithm, const EncodedGradient& gradient, int64_t n) {
  v1::OptimizerConfig config;
  config.set_algorithm(algorithm);
  const UpdateRule rule = MakeUpdateRule(config, 0.125, 1, true);
  State state;
  for (int64_t i = 0; i < n; ++i) state.weights.push_back(0.5f + static_cast<float>(i % 7));
  state.slots.assign(static_cast<size_t>(NumSlots(algorithm)), std::vector<float>(static_cast<size_t>(n), 0.25f));
  std::vector<float*> slots;
  for (std::vector<float>& slot : state.slots) slots.push_back(slot.data());
  ReduceAndApply(rule, &gradient, 1, state.weights.data(), state.weights.data(), slots.data(), slots.data(), n);
  return state;
}

std::vector<float> DecodeInPieces(v1::Codec codec, const std::vector<uint8_t>& bytes, int64_t n) {
  std::vector<float> floats(static_cast<size_t>(n));
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    DecodeRange(codec, bytes.data(), static_cast<int64_t>(bytes.size()), n, begin, std::min(kBlock, n - begin),
                floats.data() + begin);
  }
  return floats;
}

void CheckGradient(v1::Codec codec, const std::vector<uint8_t>& bytes, int64_t n,
                   v1::OptimizerConfig::Algorithm algorithm, size_t cut) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  const absl::Status accepted = CheckEncoded(codec, bytes.data(), size, n);
  if (!accepted.ok()) {
    RUBATO_FUZZ_CHECK(absl::IsInvalidArgument(accepted), accepted);
    return;
  }
  std::vector<float> floats(static_cast<size_t>(n));
  Decode(codec, bytes.data(), size, n, floats.data());
  const std::vector<float> pieces = DecodeInPieces(codec, bytes, n);
  RUBATO_FUZZ_CHECK(std::memcmp(floats.data(), pieces.data(), floats.size() * sizeof(float)) == 0, "other floats");

  cut = std::min(cut, bytes.size());
  const ByteSpan whole = {bytes.data(), bytes.size()};
  const ByteSpan parts[] = {{bytes.data(), cut}, {bytes.data() + cut, bytes.size() - cut}};
  EncodedGradient encoded = {.pieces = {&whole, 1}, .codec = codec};
  if (codec == v1::NONE) encoded.pieces = parts;
  const bool finite = std::all_of(floats.begin(), floats.end(), [](float x) { return std::isfinite(x); });
  RUBATO_FUZZ_CHECK(AllFiniteEncoded(codec, bytes.data(), size, n) == IsFinite(encoded, n), "two opinions");
  if (!IsFinite(encoded, n)) return;  // It counts as empty.
  RUBATO_FUZZ_CHECK(finite, "what is not finite is applied");
  const ByteSpan decoded = BytesOf(floats.data(), n);
  const EncodedGradient plain = {.pieces = {&decoded, 1}};
  RUBATO_FUZZ_CHECK(Updated(algorithm, encoded, n).Same(Updated(algorithm, plain, n)), "other weights");
}

}  // namespace
}  // namespace rubato

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rubato;
  Trailer trailer(data, size);
  const size_t cut = trailer.TakeWord();
  const v1::OptimizerConfig::Algorithm algorithm = kAlgorithms[trailer.TakeByte() % std::size(kAlgorithms)];
  // One more than there are.
  const v1::Codec codec = static_cast<v1::Codec>(trailer.TakeByte() % (v1::Codec_MAX + 2));
  const int64_t n = 1 + trailer.TakeWord() % kElementsMax;
  const std::string rest = trailer.Rest();
  // A block of its own, which ends where the gradient does.
  CheckGradient(codec, std::vector<uint8_t>(rest.begin(), rest.end()), n, algorithm, cut);
  return 0;
}
