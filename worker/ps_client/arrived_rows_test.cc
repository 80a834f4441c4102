#include "worker/ps_client/arrived_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"

namespace rubato::worker {
namespace {

constexpr size_t kRowBytes = 12;
constexpr size_t kRegionBytes = 4096;

class ArrivedRowsTest : public testing::Test {
 protected:
  ArrivedRowsTest() {
    for (const uint32_t chunk : batch_.chunks) reply_.header.add_chunks()->set_chunk(chunk);
  }

  void SetPayload(const std::string& bytes) {
    // In two slices.
    reply_.payload = PayloadView({grpc::Slice(bytes.substr(0, 5)), grpc::Slice(bytes.substr(5))}, 0, bytes.size());
  }
  void AddSpan(uint64_t offset, uint64_t bytes) {
    reply_.header.add_shared()->set_offset(offset);
    reply_.header.mutable_shared(reply_.header.shared_size() - 1)->set_bytes(bytes);
  }
  // Two rows were asked for.
  absl::StatusOr<ArrivedRows> Find(const SharedRegion* region = nullptr) const {
    return FindRows(batch_, reply_, 2, kRowBytes, region);
  }
  void ExpectBad(const SharedRegion* region, const std::string& what) const {
    const auto found = Find(region);
    EXPECT_TRUE(absl::IsInvalidArgument(found.status()) && absl::StrContains(found.status().message(), what))
        << found.status() << ", expected " << what;
  }
  // The bytes of decoded rows.
  static std::string Decoded(const ArrivedRows& rows, const TableParts& table, size_t begin, size_t count) {
    std::vector<float> decoded(count * static_cast<size_t>(table.dimension));
    rows.Decode(table, begin, count, decoded.data());
    return std::string(reinterpret_cast<const char*>(decoded.data()), decoded.size() * sizeof(float));
  }
  void ExpectRows(const ArrivedRows& rows) const {
    EXPECT_EQ(Decoded(rows, float_table_, 0, 2), "abcdefghijklmnopqrstuvwx");
    EXPECT_EQ(Decoded(rows, float_table_, 1, 1), "mnopqrstuvwx");
    // The upper halves of float32 are the later bytes.
    const std::string zeros(2, '\0');
    std::string expected;
    for (const char* halves : {"mn", "op", "qr", "st", "uv", "wx"}) expected += zeros + halves;
    EXPECT_EQ(Decoded(rows, bf16_table_, 1, 1), expected);
  }

  const TableParts float_table_ = {.hash = KeyHash(1), .dimension = 3, .batches = {}, .part_of_shard = {}};
  const TableParts bf16_table_ = {
      .hash = KeyHash(1), .dimension = 6, .pull = v1::BF16, .batches = {}, .part_of_shard = {}};

  const ChunkBatch batch_ = {.server = 0, .partition = 0, .chunks = {4, 5, 7}, .bytes = 0, .table = 1};
  DecodedReply reply_;
  const std::shared_ptr<SharedRegion> region_ = SharedRegion::Create("test", kRegionBytes).value();
};

TEST_F(ArrivedRowsTest, FindsRowsInThePayload) {
  SetPayload("abcdefghijklmnopqrstuvwx");
  const auto found = Find();
  ASSERT_TRUE(found.ok()) << found.status();
  ExpectRows(*found);
}

TEST_F(ArrivedRowsTest, FindsRowsInSharedMemory) {
  std::memcpy(region_->mutable_data() + 100, "abcdefghijklmnopqrstuvwx", 24);
  AddSpan(100, 24);
  const auto found = Find(region_.get());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->shared, region_->data() + 100);
  ExpectRows(*found);
}

TEST_F(ArrivedRowsTest, RefusesOtherSizes) {
  ExpectBad(nullptr, "payload: 0 bytes; 2 rows of 12 bytes were asked for, and shared has 0 entries");
  SetPayload("abcdefghijklmnopqrstuvw");
  ExpectBad(nullptr, "payload: 23 bytes");
  AddSpan(0, 24);
  ExpectBad(region_.get(), "payload: 23 bytes; 2 rows of 12 bytes were asked for, and shared has 1 entries");
}

TEST_F(ArrivedRowsTest, RefusesSpansThatAreNotTheRows) {
  AddSpan(0, 24);
  ExpectBad(nullptr, "shared[0]: 24 bytes from 0; the rows take 24 and the server's shared memory has 0");
  reply_.header.mutable_shared(0)->set_bytes(12);
  ExpectBad(region_.get(), "shared[0]: 12 bytes from 0; the rows take 24");
  reply_.header.mutable_shared(0)->set_bytes(24);
  for (const uint64_t offset : {uint64_t{kRegionBytes - 20}, UINT64_MAX, UINT64_MAX - 23}) {
    reply_.header.mutable_shared(0)->set_offset(offset);
    ExpectBad(region_.get(), "and the server's shared memory has 4096");
  }
  AddSpan(0, 24);
  ExpectBad(region_.get(), "shared: 2 entries; the rows have 1");
}

TEST_F(ArrivedRowsTest, RefusesOtherChunks) {
  SetPayload("abcdefghijklmnopqrstuvwx");
  reply_.header.mutable_chunks(1)->set_chunk(6);
  ExpectBad(nullptr, "chunks");
  reply_.header.mutable_chunks(1)->set_chunk(5);
  reply_.header.mutable_chunks()->RemoveLast();
  ExpectBad(nullptr, "chunks");
}

}  // namespace
}  // namespace rubato::worker
