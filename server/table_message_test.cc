#include "server/table_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/shared_memory/region.h"
#include "common/wire/exchange_codec.h"
#include "kernels/codec/bf16.h"

namespace rubato::server {
namespace {

constexpr uint64_t kSeed = 5;
constexpr uint32_t kShards = 4;
constexpr int kDimension = 3;
constexpr size_t kRegionBytes = 8192;
// Where in shared memory a message begins.
constexpr uint64_t kOffset = 128;

ModelSpec Model() {
  ModelSpec model;
  model.tensors.resize(2);
  TableSpec& table = model.tables.emplace_back();
  table.config.set_name("users");
  table.config.set_dimension(kDimension);
  table.config.set_keys_per_example(1);
  table.config.set_shards(kShards);
  return model;
}

// Two chunks of tensors, and the table's shards.
v1::JobDescription Job() {
  v1::JobDescription job;
  for (uint32_t tensor = 0; tensor < 2; ++tensor) {
    v1::ChunkPlacement* chunk = job.add_chunks();
    chunk->set_tensor(tensor);
    chunk->set_length(10);
  }
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    v1::ChunkPlacement* chunk = job.add_chunks();
    chunk->set_tensor(2);
    chunk->set_offset(shard);
  }
  return job;
}

class TableMessageTest : public testing::Test {
 protected:
  TableMessageTest() {
    rules_ = {.model = &model_, .seed = kSeed};
    for (uint64_t key = 0; key < 40; ++key) keys_.push_back(key);
    std::sort(keys_.begin(), keys_.end(), [&](uint64_t a, uint64_t b) { return hash_.Of(a) < hash_.Of(b); });
  }

  absl::StatusOr<std::shared_ptr<const TableMessage>> Read(const std::vector<uint64_t>& pushed,
                                                           const std::vector<uint64_t>& asked,
                                                           const std::vector<uint32_t>& chunks = {2, 3, 4, 5}) {
    std::vector<float> gradients;
    for (uint64_t key : pushed) {
      for (int i = 0; i < kDimension; ++i) gradients.push_back(static_cast<float>(key * 10 + i));
    }
    std::string bytes;
    const auto add = [&](const auto& array) {
      bytes.append(reinterpret_cast<const char*>(array.data()), array.size() * sizeof(array[0]));
    };
    add(pushed);
    if (bf16()) {
      std::vector<uint16_t> halves;
      for (const float gradient : gradients) halves.push_back(NearestBf16(gradient));
      add(halves);
    } else {
      add(gradients);
    }
    add(asked);
    bytes.resize(bytes.size() + more_bytes_);
    v1::TableKeys keys;
    keys.set_table(table_);
    keys.set_pushed(pushed.size() + more_pushed_);
    keys.set_asked(asked.size());
    DecodedRequest message;
    if (shares_) {
      const size_t asked_bytes = asked.size() * sizeof(uint64_t);
      const size_t pushed_bytes = bytes.size() - asked_bytes;
      // Not right behind what is pushed.
      const size_t asked_at = (pushed_bytes + 15) / 8 * 8;
      std::memcpy(region_->mutable_data() + kOffset, bytes.data(), pushed_bytes);
      std::memcpy(region_->mutable_data() + kOffset + asked_at, bytes.data() + pushed_bytes, asked_bytes);
      AddSpan(kOffset, pushed_bytes, &message.header);
      AddSpan(kOffset + asked_at, asked_bytes, &message.header);
      if (change_) change_(&message);
      return ReadTable(keys, with_gradients_, chunks, message, region_, rules_, job_);
    }
    // In slices that end anywhere.
    std::vector<grpc::Slice> slices;
    for (size_t at = 0; at < bytes.size(); at += 7) slices.emplace_back(bytes.substr(at, 7));
    message.payload = PayloadView(slices, 0, bytes.size());
    return ReadTable(keys, with_gradients_, chunks, message, nullptr, rules_, job_);
  }

  static void AddSpan(uint64_t offset, uint64_t bytes, v1::ExchangeRequest* header) {
    v1::SharedSpan* span = header->add_shared();
    span->set_offset(offset);
    span->set_bytes(bytes);
  }

  void ExpectBad(const absl::StatusOr<std::shared_ptr<const TableMessage>>& read, const std::string& what) {
    EXPECT_TRUE(absl::IsInvalidArgument(read.status()) && absl::StrContains(read.status().message(), what))
        << read.status() << ", expected " << what;
  }

  void ExpectRowsOfEachShard(const std::vector<uint64_t>& asked) {
    const auto read = Read(keys_, asked);
    ASSERT_TRUE(read.ok()) << read.status();
    const TableMessage& message = **read;
    EXPECT_EQ(message.asked, Hashes(asked));
    EXPECT_EQ(message.bytes, keys_.size() * (8 + kDimension * (bf16() ? 2 : 4)) + asked.size() * 8);
    ASSERT_EQ(message.by_chunk.size(), kShards);
    size_t seen = 0;
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      const RowGradient& gradient = message.by_chunk[shard];
      for (size_t i = 0; i < gradient.hashes.size(); ++i, ++seen) {
        EXPECT_EQ(gradient.hashes[i], hash_.Of(keys_[seen]));
        EXPECT_EQ(ShardOfHash(gradient.hashes[i], kShards), shard);
        const auto expected = static_cast<float>(keys_[seen] * 10 + 1);
        EXPECT_EQ(gradient.rows[i * kDimension + 1], bf16() ? FromBf16(NearestBf16(expected)) : expected);
      }
      EXPECT_EQ(gradient.pieces.front().size(), gradient.hashes.size() * kDimension * sizeof(float));
    }
    EXPECT_EQ(seen, keys_.size());
  }

  std::vector<uint64_t> Hashes(const std::vector<uint64_t>& keys) const {
    std::vector<uint64_t> hashes;
    for (uint64_t key : keys) hashes.push_back(hash_.Of(key));
    return hashes;
  }

  bool bf16() const { return model_.tables[0].config.push() == v1::BF16; }

  ModelSpec model_ = Model();
  const v1::JobDescription job_ = Job();
  const KeyHash hash_ = HashOfTable(kSeed, 0);
  TableRules rules_;
  std::vector<uint64_t> keys_;
  uint32_t table_ = 0;
  uint64_t more_pushed_ = 0;
  size_t more_bytes_ = 0;
  bool with_gradients_ = true;
  // Through shared memory, with the message changed.
  bool shares_ = false;
  std::function<void(DecodedRequest* message)> change_;
  const std::shared_ptr<SharedRegion> region_ = SharedRegion::Create("test", kRegionBytes).value();
};

TEST_F(TableMessageTest, FindsTheRowsOfEachShard) {
  const std::vector<uint64_t> asked(keys_.begin() + 5, keys_.begin() + 9);
  for (const bool shares : {false, true}) {
    SCOPED_TRACE(shares);
    shares_ = shares;
    ExpectRowsOfEachShard(asked);
  }
}

TEST_F(TableMessageTest, DecodesGradients) {
  model_.tables[0].config.set_push(v1::BF16);
  // So that what follows the keys and gradients is at no multiple of 4.
  keys_.resize(39);
  for (const bool shares : {false, true}) {
    SCOPED_TRACE(shares);
    shares_ = shares;
    ExpectRowsOfEachShard({keys_[5], keys_[6]});
    more_bytes_ = 1;
    ExpectBad(Read(keys_, {}), shares ? "shared[0].bytes: 547; what table pushes takes 546"
                                      : "39 and table.asked 0 keys with rows of 6 bytes take another size");
    more_bytes_ = 0;
  }
}

TEST_F(TableMessageTest, LeavesGradientsInSharedMemoryWhereTheyAre) {
  shares_ = true;
  const auto read = Read(keys_, {});
  ASSERT_TRUE(read.ok()) << read.status();
  const std::optional<uint64_t> offset = region_->OffsetOf((*read)->by_chunk[0].rows, kDimension * sizeof(float));
  EXPECT_EQ(offset, kOffset + keys_.size() * 8);
  EXPECT_EQ((*read)->region, region_);
}

TEST_F(TableMessageTest, ShardsWithoutKeysAreEmpty) {
  for (const bool shares : {false, true}) {
    shares_ = shares;
    const auto read = Read({}, {});
    ASSERT_TRUE(read.ok()) << read.status();
    for (const RowGradient& gradient : (*read)->by_chunk) EXPECT_TRUE(gradient.hashes.empty());
  }
}

TEST_F(TableMessageTest, RefusesSpansThatAreNotWhatTheMessageSays) {
  shares_ = true;
  const std::vector<std::pair<std::function<void(DecodedRequest*)>, std::string>> changes = {
      {[](DecodedRequest* message) { message->header.mutable_shared()->RemoveLast(); }, "shared: 1 entries"},
      {[](DecodedRequest* message) { AddSpan(0, 0, &message->header); }, "shared: 3 entries"},
      {[](DecodedRequest* message) { message->header.mutable_shared(0)->set_bytes(8); },
       "shared[0].bytes: 8; what table pushes takes 800"},
      {[](DecodedRequest* message) { message->header.mutable_shared(1)->set_bytes(328); },
       "shared[1].bytes: 328; what table asks for takes 320"},
      {[](DecodedRequest* message) { message->header.mutable_shared(0)->set_offset(kOffset + 4); },
       "shared[0].offset: 132; allowed: multiples of 8"},
      {[](DecodedRequest* message) { message->header.mutable_shared(0)->set_offset(kRegionBytes - 792); },
       "shared[0]: 800 bytes from 7400 are not inside the 8192 bytes of the worker's shared memory"},
      {[](DecodedRequest* message) { message->header.mutable_shared(1)->set_offset(UINT64_MAX - 7); },
       "shared[1]: 320 bytes from 18446744073709551608 are not inside"},
      {[](DecodedRequest* message) { message->payload = PayloadView({grpc::Slice("12345678")}, 0, 8); },
       "payload: 8 bytes, but shared is not empty"},
  };
  for (const auto& [change, what] : changes) {
    change_ = change;
    ExpectBad(Read(keys_, keys_), what);
  }
}

TEST_F(TableMessageTest, RefusesMoreKeysThanSharedMemoryHas) {
  shares_ = true;
  for (const uint64_t more : {uint64_t{kRegionBytes}, uint64_t{1} << 60, UINT64_MAX - 40}) {
    more_pushed_ = more;
    ExpectBad(Read(keys_, {}), "shared: 8192 bytes; table.pushed");
  }
  more_pushed_ = 1;
  ExpectBad(Read(keys_, {}), "shared[0].bytes: 800; what table pushes takes 820");
}

TEST_F(TableMessageTest, RefusesWhatIsNotInOrder) {
  std::vector<uint64_t> twice = keys_;
  twice[7] = twice[6];
  ExpectBad(Read(twice, {}), "pushed key 7");
  std::swap(keys_[20], keys_[21]);
  ExpectBad(Read({}, keys_), "asked key 21");
}

TEST_F(TableMessageTest, RefusesKeysOfOtherShards) {
  ExpectBad(Read(keys_, {}, {2, 3}), "which the message does not name");
  ExpectBad(Read(keys_, {}, {3, 4, 5}), "pushed key 0");
}

TEST_F(TableMessageTest, RefusesChunksThatAreNoShardsInOrder) {
  ExpectBad(Read({}, {}, {1, 2, 3}), "chunk 1 is no shard of table 0");
  ExpectBad(Read({}, {}, {3, 2}), "shard 0 after shard 1");
  ExpectBad(Read({}, {}, {2, 2}), "shard 0 after shard 0");
}

TEST_F(TableMessageTest, RefusesOtherSizes) {
  more_bytes_ = 4;
  ExpectBad(Read(keys_, keys_), "payload");
  more_bytes_ = 0;
  for (const uint64_t more : {uint64_t{1}, uint64_t{1} << 60, UINT64_MAX - 40}) {
    more_pushed_ = more;
    ExpectBad(Read(keys_, {}), "payload");
  }
}

TEST_F(TableMessageTest, RefusesUnknownTables) {
  table_ = 1;
  ExpectBad(Read({}, {}), "the job's model has 1 tables");
  rules_ = {};
  table_ = 0;
  ExpectBad(Read({}, {}), "the job's model has 0 tables");
}

TEST_F(TableMessageTest, RefusesGradientsWhereThereAreNoExamples) {
  with_gradients_ = false;
  ExpectBad(Read(keys_, {}), "table.pushed");
  EXPECT_TRUE(Read({}, keys_).ok());
}

}  // namespace
}  // namespace rubato::server
