#include "worker/ps_client/host_encoder.h"

#include <gtest/gtest.h>

#include <limits>
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

TEST(HostEncoderTest, EncodesByTheTensorsCodecIntoTheArena) {
  const std::shared_ptr<SharedArena> arena = SharedArena::Create("test", 4096).value();
  HostEncoder encoder(TwoChunks(), {.codecs = {{v1::NONE}, {v1::BF16}}, .arena = arena});
  std::vector<float> gradient(kLength, 1.5f);
  for (uint32_t chunk = 0; chunk < 2; ++chunk) encoder.EncodeChunk(chunk, gradient.data(), 0, true);
  EXPECT_EQ(encoder.codec(0), v1::NONE);
  const absl::Span<const uint8_t> encoded = encoder.Encoded(1);
  EXPECT_EQ(encoded.size(), 2u * kLength);
  EXPECT_TRUE(arena->region().OffsetOf(encoded.data(), encoded.size()).has_value());
  std::vector<float> decoded(kLength);
  Decode(v1::BF16, encoded.data(), static_cast<int64_t>(encoded.size()), kLength, decoded.data());
  EXPECT_EQ(decoded, gradient);
}

TEST(HostEncoderTest, SendsLaterWhatTopKLeftOut) {
  HostEncoder encoder(TwoChunks(), {.codecs = {{v1::TOP_K, 1.0 / kLength}, {v1::NONE}}});
  std::vector<float> sum(kLength, 0.0f), decoded(kLength);
  std::vector<float> gradient = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> expected = gradient;
  for (int64_t step = 0; step < kLength; ++step) {
    encoder.EncodeChunk(0, gradient.data(), step, true);
    const absl::Span<const uint8_t> encoded = encoder.Encoded(0);
    Decode(v1::TOP_K, encoded.data(), static_cast<int64_t>(encoded.size()), kLength, decoded.data());
    for (int64_t i = 0; i < kLength; ++i) sum[i] += decoded[i];
    gradient.assign(kLength, 0.0f);
  }
  EXPECT_EQ(sum, expected);
}

TEST(HostEncoderTest, WhatIsNotCompressedTakesAlongWhatWasLeftOut) {
  HostEncoder encoder(TwoChunks(), {.codecs = {{v1::TOP_K, 1.0 / kLength}, {v1::NONE}}});
  std::vector<float> gradient = {1, 2, 3, 4, 5, 6, 7, 8};
  encoder.EncodeChunk(0, gradient.data(), 0, true);
  EXPECT_EQ(encoder.codec(0), v1::TOP_K);

  std::vector<float> overflown(kLength, 1.0f);
  overflown[3] = std::numeric_limits<float>::infinity();
  encoder.EncodeChunk(0, overflown.data(), 1, false);
  EXPECT_EQ(encoder.codec(0), v1::NONE);
  EXPECT_EQ(overflown[0], 1) << "servers drop it, and nothing with it";

  std::vector<float> next(kLength, 100.0f);
  encoder.EncodeChunk(0, next.data(), 2, false);
  EXPECT_EQ(next, (std::vector<float>{101, 102, 103, 104, 105, 106, 107, 100}));
  next.assign(kLength, 100.0f);
  encoder.EncodeChunk(0, next.data(), 3, false);
  EXPECT_EQ(next, std::vector<float>(kLength, 100.0f)) << "once";
  encoder.EncodeChunk(0, next.data(), 4, true);
  EXPECT_EQ(encoder.codec(0), v1::TOP_K);
}

}  // namespace
}  // namespace rubato::worker
