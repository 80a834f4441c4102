// Every instruction set makes and reads the same bytes.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/random.h"
#include "kernels/codec/codec.h"
#include "kernels/optimizer/isa.h"

namespace rubato {
namespace {

// Numbers of all sizes: normal ones, ones near the formats' limits, and with `wild` any bits at all.
std::vector<float> Values(int64_t n, uint64_t seed, bool wild) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) {
    if (wild && random.Below(64) == 0) {
      value = std::bit_cast<float>(random.Next32());
    } else {
      value = static_cast<float>(random.Normal() * std::ldexp(1.0, static_cast<int>(random.Below(40)) - 30));
    }
    if (random.Below(50) == 0) value = 0;
  }
  return values;
}

struct Result {
  std::vector<uint8_t> encoded;
  std::vector<float> residual;
  std::vector<float> decoded;
  bool finite;
};

Result RunOn(Isa isa, const CodecSpec& spec, const std::vector<float>& values, uint64_t seed) {
  const int64_t n = static_cast<int64_t>(values.size());
  Result result;
  result.residual = Values(n, seed + 1, false);
  result.decoded.resize(n);
  result.encoded.resize(MaxEncodedBytes(spec, n));
  const int64_t bytes = EncodeOn(isa, spec, values.data(), n, result.residual.data(), seed, 3, result.encoded.data());
  EXPECT_EQ(bytes, static_cast<int64_t>(result.encoded.size()));
  DecodeRangeOn(isa, spec.codec, result.encoded.data(), bytes, n, 0, n, result.decoded.data());
  result.finite = AllFiniteEncodedOn(isa, spec.codec, result.encoded.data(), bytes, n);
  return result;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), sizeof(float) * a.size()) == 0);
}

class CodecIsaTest : public testing::TestWithParam<v1::Codec> {};

TEST_P(CodecIsaTest, EveryInstructionSetGivesTheSameBits) {
  const CodecSpec spec = {GetParam(), 0.02};
  for (bool wild : {false, true}) {
    for (int64_t n : {0, 1, 31, 32, 33, 255, 256, 257, 1000, 4097, 40000}) {
      const std::vector<float> values = Values(n, n, wild);
      const Result baseline = RunOn(Isa::kBaseline, spec, values, n);
      for (Isa isa : kAllIsas) {
        if (!Supports(isa)) continue;
        SCOPED_TRACE(testing::Message() << IsaName(isa) << ", n = " << n << (wild ? ", wild" : ""));
        const Result other = RunOn(isa, spec, values, n);
        EXPECT_EQ(baseline.encoded, other.encoded);
        EXPECT_EQ(baseline.finite, other.finite);
        EXPECT_TRUE(SameBits(baseline.residual, other.residual));
        EXPECT_TRUE(SameBits(baseline.decoded, other.decoded));
      }
    }
  }
}

TEST_P(CodecIsaTest, AnyBytesThatPassTheCheckCanBeRead) {
  Random random(5);
  for (int64_t n : {1, 100, 256, 300, 600}) {
    for (int round = 0; round < 50; ++round) {
      std::vector<uint8_t> bytes(MaxEncodedBytes({GetParam(), 0.1}, n));
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next32());
      const int64_t size = static_cast<int64_t>(bytes.size());
      if (!CheckEncoded(GetParam(), bytes.data(), size, n).ok()) continue;
      std::vector<float> baseline(n);
      DecodeRangeOn(Isa::kBaseline, GetParam(), bytes.data(), size, n, 0, n, baseline.data());
      bool finite = true;
      for (float value : baseline) finite = finite && std::isfinite(value);
      for (Isa isa : kAllIsas) {
        if (!Supports(isa)) continue;
        std::vector<float> decoded(n);
        DecodeRangeOn(isa, GetParam(), bytes.data(), size, n, 0, n, decoded.data());
        EXPECT_TRUE(SameBits(baseline, decoded)) << IsaName(isa);
        // A scale that is not finite counts even if nothing uses it.
        EXPECT_TRUE(finite || !AllFiniteEncodedOn(isa, GetParam(), bytes.data(), size, n)) << IsaName(isa);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CodecIsaTest, testing::ValuesIn(AllCodecs()),
                         [](const auto& info) { return v1::Codec_Name(info.param); });

}  // namespace
}  // namespace rubato
