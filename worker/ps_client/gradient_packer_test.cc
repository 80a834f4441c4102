#include "worker/ps_client/gradient_packer.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace rubato::worker {
namespace {

constexpr int64_t kLength = 8;

// A chunk of each of two tensors.
v1::JobDescription TwoChunks() {
  v1::JobDescription job;
  for (uint32_t tensor = 0; tensor < 2; ++tensor) {
    v1::ChunkPlacement* chunk = job.add_chunks();
    chunk->set_tensor(tensor);
    chunk->set_length(kLength);
  }
  return job;
}

TEST(GradientPackerTest, SendsWhatIsNotPackedFromWhereItIs) {
  const v1::JobDescription job = TwoChunks();
  GradientPacker packer(&job, {});
  const std::vector<float> gradient(kLength, 1.0f);
  packer.Pack(1, gradient.data(), 0);
  const auto [data, bytes] = packer.Bytes(1, gradient.data());
  EXPECT_EQ(packer.codec(1), v1::NONE);
  EXPECT_EQ(data, gradient.data());
  EXPECT_EQ(bytes, sizeof(float) * kLength);
}

TEST(GradientPackerTest, PacksByTheTensorsCodecIntoTheArena) {
  const v1::JobDescription job = TwoChunks();
  const std::shared_ptr<SharedArena> arena = SharedArena::Create("test", 4096).value();
  GradientPacker packer(&job, {.codecs = {{v1::NONE}, {v1::BF16}}, .arena = arena});
  const std::vector<float> gradient(kLength, 1.5f);
  for (uint32_t chunk = 0; chunk < 2; ++chunk) packer.Pack(chunk, gradient.data(), 0);
  EXPECT_EQ(packer.Bytes(0, gradient.data()).first, gradient.data());
  const auto [data, bytes] = packer.Bytes(1, gradient.data());
  EXPECT_EQ(bytes, 2u * kLength);
  EXPECT_TRUE(arena->region().OffsetOf(data, bytes).has_value());
  std::vector<float> decoded(kLength);
  Decode(v1::BF16, static_cast<const uint8_t*>(data), static_cast<int64_t>(bytes), kLength, decoded.data());
  EXPECT_EQ(decoded, gradient);
}

TEST(GradientPackerTest, SendsLaterWhatTopKLeftOut) {
  const v1::JobDescription job = TwoChunks();
  GradientPacker packer(&job, {.codecs = {{v1::TOP_K, 1.0 / kLength}, {v1::NONE}}});
  std::vector<float> sum(kLength, 0.0f), decoded(kLength);
  std::vector<float> gradient = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> expected = gradient;
  for (int64_t step = 0; step < kLength; ++step) {
    packer.Pack(0, gradient.data(), step);
    const auto [data, bytes] = packer.Bytes(0, gradient.data());
    Decode(v1::TOP_K, static_cast<const uint8_t*>(data), static_cast<int64_t>(bytes), kLength, decoded.data());
    for (int64_t i = 0; i < kLength; ++i) sum[i] += decoded[i];
    gradient.assign(kLength, 0.0f);
  }
  EXPECT_EQ(sum, expected);
}

}  // namespace
}  // namespace rubato::worker
