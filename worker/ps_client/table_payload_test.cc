#include "worker/ps_client/table_payload.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "kernels/codec/bf16.h"

namespace rubato::worker {
namespace {

// Rows of two weights; of four keys, a part has the first and the last two.
class TablePayloadTest : public testing::Test {
 protected:
  // All of the part, and whether nothing is written behind it.
  std::vector<uint8_t> Write(bool with_gradients) {
    const size_t bytes = PayloadBytes(table_, part_, with_gradients);
    const auto words = std::make_unique<uint64_t[]>(bytes / sizeof(uint64_t) + 2);
    std::memset(words.get(), 0xee, bytes + sizeof(uint64_t));
    WritePayload(table_, part_, keys_.data(), with_gradients ? gradients_.data() : nullptr, words.get());
    const auto* written = reinterpret_cast<const uint8_t*>(words.get());
    EXPECT_EQ(written[bytes], 0xee);
    return {written, written + bytes};
  }
  template <typename T>
  static void Append(const std::vector<T>& array, std::vector<uint8_t>* bytes) {
    const auto* begin = reinterpret_cast<const uint8_t*>(array.data());
    bytes->insert(bytes->end(), begin, begin + sizeof(T) * array.size());
  }

  TableParts table_{.hash = KeyHash(1), .dimension = 2, .push = v1::NONE, .batches = {}, .part_of_shard = {}};
  const KeyPart part_{.runs = {{0, 1}, {2, 2}}, .count = 3};
  const std::vector<uint64_t> keys_ = {11, 12, 13, uint64_t{1} << 63};
  const std::vector<float> gradients_ = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f};
  const std::vector<uint64_t> part_keys_ = {11, 13, uint64_t{1} << 63};
};

TEST_F(TablePayloadTest, KeysAloneAreWhatIsAsked) {
  std::vector<uint8_t> expected;
  Append(part_keys_, &expected);
  EXPECT_EQ(Write(/*with_gradients=*/false), expected);
}

TEST_F(TablePayloadTest, GradientsOfAllRunsStandBehindTheKeys) {
  std::vector<uint8_t> expected;
  Append(part_keys_, &expected);
  Append(std::vector<float>{0.1f, 0.2f, 0.5f, 0.6f, 0.7f, 0.8f}, &expected);
  EXPECT_EQ(Write(/*with_gradients=*/true), expected);
}

TEST_F(TablePayloadTest, GradientsAreEncodedAsTheTableSays) {
  table_.push = v1::BF16;
  std::vector<uint16_t> halves;
  for (const float value : {0.1f, 0.2f, 0.5f, 0.6f, 0.7f, 0.8f}) halves.push_back(NearestBf16(value));
  std::vector<uint8_t> expected;
  Append(part_keys_, &expected);
  Append(halves, &expected);
  EXPECT_EQ(Write(/*with_gradients=*/true), expected);
}

}  // namespace
}  // namespace rubato::worker
