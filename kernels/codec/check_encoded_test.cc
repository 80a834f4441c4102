#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "kernels/codec/codec.h"

namespace rubato {
namespace {

absl::Status Check(v1::Codec codec, const std::vector<uint8_t>& bytes, int64_t n) {
  return CheckEncoded(codec, bytes.data(), static_cast<int64_t>(bytes.size()), n);
}

void ExpectInvalid(const absl::Status& status, absl::string_view text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), text)) << status;
}

// TOP_K bytes as a sender would write it, but with anything in it.
std::vector<uint8_t> TopK(uint32_t count, const std::vector<uint32_t>& indices, size_t values) {
  std::vector<uint8_t> bytes(4 + 4 * indices.size() + 4 * values);
  std::memcpy(bytes.data(), &count, 4);
  if (!indices.empty()) std::memcpy(bytes.data() + 4, indices.data(), 4 * indices.size());
  return bytes;
}

TEST(CheckEncodedTest, LengthsAreExact) {
  const std::map<v1::Codec, int64_t> lengths = {{v1::NONE, 1200}, {v1::CODEC_UNSPECIFIED, 1200},
                                                {v1::BF16, 600},  {v1::FP16, 600},
                                                {v1::INT8, 308},  {v1::ONE_BIT, 54}};
  for (v1::Codec codec : AllCodecs()) {
    EXPECT_EQ(lengths.count(codec) == 0, TraitsOf(codec).takes_fraction()) << v1::Codec_Name(codec);
  }
  for (const auto& [codec, length] : lengths) {
    EXPECT_TRUE(Check(codec, std::vector<uint8_t>(length), 300).ok()) << v1::Codec_Name(codec);
    for (int64_t wrong : {int64_t{0}, length - 1, length + 1, length + 4}) {
      ExpectInvalid(Check(codec, std::vector<uint8_t>(wrong), 300), "encoded_bytes: ");
    }
  }
  ExpectInvalid(Check(v1::INT8, std::vector<uint8_t>(12), 300),
                "encoded_bytes: 12 where INT8 takes 308 for 300 elements");
  ExpectInvalid(Check(v1::CODEC_UNSPECIFIED, std::vector<uint8_t>(12), 4), "where NONE takes 16 for 4 elements");
}

TEST(CheckEncodedTest, UnknownCodecsAreNamed) {
  ExpectInvalid(Check(static_cast<v1::Codec>(17), std::vector<uint8_t>(4), 1), "codec: 17 is unknown");
  ExpectInvalid(Check(static_cast<v1::Codec>(-1), std::vector<uint8_t>(4), 1), "codec: -1 is unknown");
}

TEST(CheckEncodedTest, TopKTakesAscendingIndicesInTheChunk) {
  EXPECT_TRUE(Check(v1::TOP_K, TopK(0, {}, 0), 0).ok());
  EXPECT_TRUE(Check(v1::TOP_K, TopK(0, {}, 0), 10).ok());
  EXPECT_TRUE(Check(v1::TOP_K, TopK(3, {0, 4, 9}, 3), 10).ok());
  EXPECT_TRUE(Check(v1::TOP_K, TopK(2, {0, 1}, 2), 2).ok());
  ExpectInvalid(Check(v1::TOP_K, TopK(4, {1, 4, 7, 7}, 4), 10), "payload: index 7 at 3 is not above the one before");
  ExpectInvalid(Check(v1::TOP_K, TopK(2, {5, 2}, 2), 10), "payload: index 2 at 1 is not above the one before, 5");
  ExpectInvalid(Check(v1::TOP_K, TopK(2, {5, 10}, 2), 10), "payload: index 10 at 1 where the chunk has 10");
  ExpectInvalid(Check(v1::TOP_K, TopK(1, {0xffffffff}, 1), 10), "payload: index 4294967295 at 0");
}

TEST(CheckEncodedTest, TopKCountFitsTheChunkAndTheLength) {
  ExpectInvalid(Check(v1::TOP_K, {}, 10), "encoded_bytes: 0 where TOP_K takes 4 or more");
  ExpectInvalid(Check(v1::TOP_K, {1, 0, 0}, 10), "encoded_bytes: 3");
  ExpectInvalid(Check(v1::TOP_K, TopK(3, {0, 1, 2}, 3), 2), "payload: 3 elements where the chunk has 2");
  ExpectInvalid(Check(v1::TOP_K, TopK(0xffffffff, {0, 1, 2}, 3), 100), "payload: 4294967295 elements");
  ExpectInvalid(Check(v1::TOP_K, TopK(3, {0, 1, 2}, 2), 10), "encoded_bytes: 24 where TOP_K takes 28 for 3 elements");
  ExpectInvalid(Check(v1::TOP_K, TopK(3, {0, 1, 2}, 4), 10), "encoded_bytes: 32 where TOP_K takes 28 for 3 elements");
}

TEST(CheckEncodedTest, OneBitHasNoBitsAfterTheLastElement) {
  std::vector<uint8_t> encoded(8 + 2);
  encoded[9] = 0x03;
  EXPECT_TRUE(Check(v1::ONE_BIT, encoded, 10).ok());
  encoded[9] = 0x04;
  ExpectInvalid(Check(v1::ONE_BIT, encoded, 10), "payload: bits after the last element");
  EXPECT_TRUE(Check(v1::ONE_BIT, encoded, 16).ok());
}

}  // namespace
}  // namespace rubato
