#include "kernels/optimizer/initializer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "common/proto_enum.h"
#include "common/random.h"

namespace rubato {
namespace {

// One Philox block makes this many elements.
constexpr int64_t kBlock = 4;

using Values = std::array<double, kBlock>;

// In (0, 1), so that its logarithm is finite.
double OpenUniform(uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1.0p-32; }

Values UniformBlock(const std::array<uint32_t, 4>& words) {
  Values values;
  for (int i = 0; i < kBlock; ++i) values[i] = 2 * OpenUniform(words[i]) - 1;
  return values;
}

Values NormalBlock(const std::array<uint32_t, 4>& words) {
  Values values;
  for (int i = 0; i < kBlock; i += 2) {
    const double radius = std::sqrt(-2 * std::log(OpenUniform(words[i])));
    const double angle = 2 * std::numbers::pi * OpenUniform(words[i + 1]);
    values[i] = radius * std::cos(angle);
    values[i + 1] = radius * std::sin(angle);
  }
  return values;
}

// Elements [offset, offset + n) of scale * distribution, block by block.
template <typename Distribution>
void Fill(uint64_t seed, uint64_t stream, double scale, int64_t offset, int64_t n, float* out,
          Distribution distribution) {
  const int64_t end = offset + n;
  for (int64_t block = offset / kBlock; block * kBlock < end; ++block) {
    const Values values = distribution(PhiloxBlock(seed, stream, static_cast<uint64_t>(block)));
    const int64_t from = std::max(offset, block * kBlock);
    const int64_t to = std::min(end, (block + 1) * kBlock);
    for (int64_t i = from; i < to; ++i) out[i - offset] = static_cast<float>(scale * values[i - block * kBlock]);
  }
}

}  // namespace

void InitializeSlice(const TensorSpec& tensor, int tensor_index, uint64_t seed, int64_t offset, int64_t n, float* out) {
  if (tensor.ones) {
    std::fill_n(out, n, 1.0f);
    return;
  }
  const uint64_t stream = StreamId("initialize", static_cast<uint64_t>(tensor_index));
  const double fan_in = static_cast<double>(tensor.fan_in), fan_out = static_cast<double>(tensor.fan_out);
  switch (tensor.initializer) {
    case v1::ZEROS:
      std::fill_n(out, n, 0.0f);
      return;
    case v1::GLOROT_UNIFORM:
      return Fill(seed, stream, std::sqrt(6 / (fan_in + fan_out)), offset, n, out, UniformBlock);
    case v1::LECUN_NORMAL:
      return Fill(seed, stream, std::sqrt(1 / fan_in), offset, n, out, NormalBlock);
    case v1::HE_NORMAL:
    case v1::INITIALIZER_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::Initializer) : break;
  }
  Fill(seed, stream, std::sqrt(2 / fan_in), offset, n, out, NormalBlock);
}

}  // namespace rubato
