#include "kernels/cuda/encode.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "common/random.h"
#include "kernels/codec/codec.h"
#include "kernels/cuda/test_device.h"

namespace rubato::cuda {
namespace {

constexpr uint64_t kSeed = 12, kStream = 34;

class EncodeTest : public DeviceTest {
 protected:
  // Numbers of many magnitudes, with zeros of both signs and equal ones.
  std::vector<float> Values(int64_t n) {
    std::vector<float> values(n);
    for (float& value : values) {
      value = static_cast<float>(random_.Normal() * std::exp2(static_cast<double>(random_.Below(60)) - 40));
      if (random_.Below(20) == 0) value = random_.Below(2) == 0 ? 0.0f : -0.0f;
      if (random_.Below(20) == 0) value = -1.5f;
    }
    return values;
  }

  absl::Status Encode(const CodecSpec& spec, const std::vector<float>& values, int64_t bytes, float* residual,
                      uint8_t* out) {
    const float* device = Upload(values);
    const auto n = static_cast<int64_t>(values.size());
    Work work = NewWork();
    switch (spec.codec) {
      case v1::BF16:
        return EncodeBf16(stream(), device, n, out);
      case v1::FP16:
        return EncodeFp16(stream(), device, n, out);
      case v1::INT8:
        return EncodeInt8(stream(), device, n, kSeed, kStream, out);
      case v1::ONE_BIT:
        return EncodeOneBit(stream(), device, n, residual, out);
      default:
        return EncodeTopK(work, device, n, (bytes - 4) / 8, residual, out);
    }
  }

  // The same bytes and residuals as on the host.
  void ExpectSame(const CodecSpec& spec, const std::vector<float>& values) {
    const auto n = static_cast<int64_t>(values.size());
    const int64_t bytes = MaxEncodedBytes(spec, n);
    std::vector<float> residual = Values(n);
    uint8_t* out = Upload(std::vector<uint8_t>(bytes + 4, 0xcd));
    float* device_residual = Upload(residual);
    const absl::Status status = Encode(spec, values, bytes, device_residual, out);
    ASSERT_TRUE(status.ok()) << status;
    std::vector<uint8_t> expected(bytes);
    rubato::Encode(spec, values.data(), n, HasResidual(spec.codec) ? residual.data() : nullptr, kSeed, kStream,
                   expected.data());
    EXPECT_EQ(Download(out, bytes), expected);
    // Nothing behind the end.
    EXPECT_EQ(Download(out + bytes, 4), std::vector<uint8_t>(4, 0xcd));
    const std::vector<float> left = Download(device_residual, n);
    EXPECT_EQ(std::memcmp(left.data(), residual.data(), n * sizeof(float)), 0);
  }

  Random random_{20250611};
};

TEST_F(EncodeTest, GivesTheBytesOfTheHost) {
  for (v1::Codec codec : {v1::BF16, v1::FP16, v1::INT8, v1::ONE_BIT, v1::TOP_K}) {
    for (int64_t n : {1, 7, 255, 256, 257, 1000, 5003}) {
      SCOPED_TRACE(::testing::Message() << v1::Codec_Name(codec) << ", " << n << " elements");
      ExpectSame({codec, 0.1}, Values(n));
    }
  }
}

TEST_F(EncodeTest, TreatsSpecialNumbersAsTheHostDoes) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float largest = std::numeric_limits<float>::max(), subnormal = std::numeric_limits<float>::denorm_min();
  for (v1::Codec codec : {v1::BF16, v1::FP16, v1::INT8, v1::ONE_BIT, v1::TOP_K}) {
    for (float special : {infinity, -infinity, nan, largest, -largest, subnormal, 65504.0f, 65520.0f}) {
      SCOPED_TRACE(::testing::Message() << v1::Codec_Name(codec) << ", " << special);
      std::vector<float> values(600, 0.25f);
      values[300] = special;
      ExpectSame({codec, 0.05}, values);
    }
    ExpectSame({codec, 0.05}, std::vector<float>(300, subnormal));
    ExpectSame({codec, 0.05}, std::vector<float>(300, 0.0f));
  }
}

}  // namespace
}  // namespace rubato::cuda
