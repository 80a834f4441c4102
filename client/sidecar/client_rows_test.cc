#include "client/sidecar/client_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "client/link/frame.h"
#include "common/table_keys.h"

namespace rubato::client {
namespace {

using Keys = std::vector<uint64_t>;
using Floats = std::vector<float>;

constexpr uint64_t kSeed = 5;

// The rows of a key are the key and the table's number; keys have to come as servers take them.
class FakeServers : public worker::Parameters {
 public:
  Step next_step() override { return {}; }
  absl::StatusOr<bool> AwaitTensor(int) override { return true; }
  void Restart() override {}
  absl::StatusOr<bool> BeginStep(Step*) override { return true; }
  void PushTensor(int, const Pushed&) override {}
  absl::Status AwaitAcknowledgements() override { return absl::OkStatus(); }

  void AskRows(int table, const Keys& keys) override {
    ExpectInOrder(table, keys);
    rows_[table].resize(2 * keys.size());
    Fill(table, keys, rows_[table].data());
  }
  absl::StatusOr<bool> AwaitRows(int table) override { return !moved.contains(table); }
  const float* rows(int table) override { return rows_[table].data(); }
  void PushRows(int table, const Keys& keys, const Floats& gradients, const Pushed& pushed) override {
    ExpectInOrder(table, keys);
    examples = pushed.examples;
    for (size_t i = 0; i < keys.size(); ++i) pushed_to[keys[i]] = {gradients[2 * i], gradients[2 * i + 1]};
  }

  static void ExpectInOrder(int table, const Keys& keys) {
    const KeyHash hash = HashOfTable(kSeed, table);
    EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end(),
                               [&](uint64_t left, uint64_t right) { return hash.Of(left) < hash.Of(right); }));
  }
  static void Fill(int table, const Keys& keys, float* rows) {
    for (size_t i = 0; i < keys.size(); ++i) {
      rows[2 * i] = static_cast<float>(keys[i]);
      rows[2 * i + 1] = static_cast<float>(table);
    }
  }

  std::set<int> moved;
  std::map<uint64_t, Floats> pushed_to;
  uint64_t examples = 0;

 private:
  std::map<int, Floats> rows_;
};

class ClientRowsTest : public ::testing::Test {
 protected:
  ClientRowsTest()
      : rows_(&spec_, kSeed, &servers_, [this](int table, const Keys& keys, float* rows) {
          FakeServers::ExpectInOrder(table, keys);
          FakeServers::Fill(table, keys, rows);
          return failure_;
        }) {}

  static ModelSpec Tables() {
    ModelSpec spec;
    spec.tables.resize(2);
    for (TableSpec& table : spec.tables) table.config.set_dimension(2);
    return spec;
  }
  // Of the keys, as the servers have them.
  static Floats RowsOf(int table, const Keys& keys) {
    Floats rows(2 * keys.size());
    FakeServers::Fill(table, keys, rows.data());
    return rows;
  }
  // What Take gives of a table.
  static Floats Read(BodyReader* reader) {
    uint64_t count = 0;
    Floats rows;
    EXPECT_TRUE(reader->Get(&count));
    EXPECT_TRUE(reader->Array(2 * count, &rows));
    return rows;
  }

  const ModelSpec spec_ = Tables();
  FakeServers servers_;
  absl::Status failure_;
  ClientRows rows_;
  Keys keys_ = {900, 3, 70, 12, 5, 44, 1, 8000};
};

TEST_F(ClientRowsTest, RowsComeInTheOrderOfTheirKeys) {
  rows_.Ask(1, keys_);
  ASSERT_TRUE(*rows_.Await());
  const std::string answer = rows_.Take();
  BodyReader reader(answer);
  EXPECT_EQ(Read(&reader), Floats());
  EXPECT_EQ(Read(&reader), RowsOf(1, keys_));
  EXPECT_TRUE(reader.AtEnd());
  // They were asked for once.
  const std::string next = rows_.Take();
  BodyReader nothing(next);
  EXPECT_EQ(Read(&nothing), Floats());
  EXPECT_EQ(Read(&nothing), Floats());
}

TEST_F(ClientRowsTest, AMoveIsOneOfAllTables) {
  servers_.moved = {1};
  EXPECT_FALSE(*rows_.Await());
}

TEST_F(ClientRowsTest, GradientsStayWithTheirKeys) {
  Floats gradients;
  for (uint64_t key : keys_) gradients.insert(gradients.end(), {static_cast<float>(key) / 2, 1});
  rows_.Push(0, keys_, gradients, {.examples = 7});
  EXPECT_EQ(servers_.examples, 7u);
  ASSERT_EQ(servers_.pushed_to.size(), keys_.size());
  for (uint64_t key : keys_) EXPECT_EQ(servers_.pushed_to[key], (Floats{static_cast<float>(key) / 2, 1}));
}

TEST_F(ClientRowsTest, RowsAreReadAsTheyAre) {
  const absl::StatusOr<std::string> answer = rows_.Read(1, keys_);
  ASSERT_TRUE(answer.ok()) << answer.status();
  BodyReader reader(*answer);
  Floats rows;
  ASSERT_TRUE(reader.Array(2 * keys_.size(), &rows));
  EXPECT_EQ(rows, RowsOf(1, keys_));
  failure_ = absl::UnavailableError("server 0");
  EXPECT_EQ(rows_.Read(1, keys_).status(), failure_);
}

}  // namespace
}  // namespace rubato::client
