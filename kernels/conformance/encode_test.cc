#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/codec/codec.h"
#include "kernels/conformance/harness.h"

namespace rubato::conformance {
namespace {

constexpr uint64_t kSeed = 12, kStream = 34;
// In front of what is encoded, and behind it.
constexpr int64_t kMargin = 3;
constexpr int32_t kUnwritten = 0x5dcdcdcd;

// Those that there is something to do for: NONE is sent as it lies there.
std::vector<v1::Codec> Encoders() {
  std::vector<v1::Codec> codecs;
  for (v1::Codec codec : AllCodecs()) {
    if (codec != v1::NONE && TraitsOf(codec).gpu != GpuEncoder::kNone) codecs.push_back(codec);
  }
  return codecs;
}

class MessageTest : public ConformanceTest {
 protected:
  // Numbers of many magnitudes, with zeros of both signs and equal ones.
  Values MixedValues(int64_t n) {
    Values values(n);
    for (double& value : values) {
      value = static_cast<float>(random_.Normal() * std::exp2(static_cast<double>(random_.Below(60)) - 40));
      if (random_.Below(20) == 0) value = random_.Below(2) == 0 ? 0.0 : -0.0;
      if (random_.Below(20) == 0) value = -1.5;
    }
    return values;
  }

  // The bytes and residuals of kernels/codec, and nothing else changes.
  void ExpectSame(const CodecSpec& spec, const Values& values) {
    const auto n = static_cast<int64_t>(values.size());
    Values all(kMargin, 7.0);
    all.insert(all.end(), values.begin(), values.end());
    all.insert(all.end(), kMargin, 7.0);
    const Values kept = HasResidual(spec.codec) ? MixedValues(n) : Values();
    const int64_t words = MaxEncodedWords(spec, n);
    const DeviceTensor encoded = UploadInts({words + 1}, std::vector<int32_t>(words + 1, kUnwritten));
    const DeviceTensor residual = kept.empty() ? DeviceTensor() : Upload({n}, kept);
    EXPECT_OK(backend_->Encode({.codec = spec, .offset = kMargin, .count = n, .seed = kSeed, .stream = kStream},
                               Upload({n + 2 * kMargin}, all), residual, encoded));

    const std::vector<float> from(values.begin(), values.end());
    std::vector<float> left(kept.begin(), kept.end());
    std::vector<int32_t> expected(words + 1, kUnwritten);
    Encode(spec, from.data(), n, left.empty() ? nullptr : left.data(), kSeed, kStream,
           reinterpret_cast<uint8_t*>(expected.data()));
    EXPECT_EQ(DownloadInts(encoded), expected);
    if (kept.empty()) return;
    const Values downloaded = Download(residual);
    const std::vector<float> actual(downloaded.begin(), downloaded.end());
    EXPECT_EQ(std::memcmp(actual.data(), left.data(), n * sizeof(float)), 0);
  }
};

TEST_P(MessageTest, AreTheSameBytesOnEveryDevice) {
  for (v1::Codec codec : Encoders()) {
    for (int64_t n : {1, 7, 255, 256, 257, 1000, 5003}) {
      SCOPED_TRACE(::testing::Message() << v1::Codec_Name(codec) << ", " << n << " elements");
      ExpectSame({codec, 0.1}, MixedValues(n));
    }
  }
}

TEST_P(MessageTest, TreatSpecialNumbersTheSame) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float largest = std::numeric_limits<float>::max(), subnormal = std::numeric_limits<float>::denorm_min();
  for (v1::Codec codec : Encoders()) {
    for (float special : {infinity, -infinity, nan, largest, -largest, subnormal, 65504.0f, 65520.0f}) {
      SCOPED_TRACE(::testing::Message() << v1::Codec_Name(codec) << ", " << special);
      Values values(600, 0.25);
      values[300] = special;
      ExpectSame({codec, 0.05}, values);
    }
    for (float magnitude : {subnormal, 0x1p-106f, 0x1p-105f, 0x1p-100f}) {
      Values values = MixedValues(300);
      for (double& value : values) value = static_cast<float>(value * magnitude / 0x1p24);
      ExpectSame({codec, 0.05}, values);
      ExpectSame({codec, 0.05}, Values(300, magnitude));
    }
    ExpectSame({codec, 0.05}, Values(300, 0.0));
  }
}

TEST_P(MessageTest, RefuseWhatDoesNotFit) {
  const DeviceTensor values = Upload({10}, Values(10, 1.0)), residual = Upload({10}, Values(10, 0.0));
  const DeviceTensor encoded = Empty({64}, ElementType::kInt32), too_short = Empty({4}, ElementType::kInt32);
  const auto encode = [&](const EncodedRange& range, const DeviceTensor& kept, const DeviceTensor& out) {
    return backend_->Encode(range, values, kept, out).code();
  };
  const CodecSpec bf16 = {v1::BF16}, one_bit = {v1::ONE_BIT};
  EXPECT_EQ(encode({.codec = {v1::NONE}, .count = 10}, {}, encoded), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(encode({.codec = {v1::TOP_K, 1.5}, .count = 10}, residual, encoded), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(encode({.codec = bf16, .offset = 1, .count = 10}, {}, encoded), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(encode({.codec = bf16, .count = 10}, residual, encoded), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(encode({.codec = one_bit, .count = 10}, {}, encoded), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(encode({.codec = one_bit, .count = 9}, residual, encoded), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(encode({.codec = bf16, .count = 10}, {}, too_short), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(encode({.codec = bf16, .count = 10}, {}, values), absl::StatusCode::kInvalidArgument);
  EXPECT_OK(backend_->Encode({.codec = bf16, .count = 8}, values, {}, too_short));
}

INSTANTIATE_TEST_SUITE_P(Backends, MessageTest, ::testing::ValuesIn(AllBackends()), CaseName);

}  // namespace
}  // namespace rubato::conformance
