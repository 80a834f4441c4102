#ifndef RUBATO_SERVER_RULES_TESTING_PARTITION_HARNESS_H_
#define RUBATO_SERVER_RULES_TESTING_PARTITION_HARNESS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/rules/partition.h"
#include "server/rules/testing/builders.h"

namespace rubato::server {

// A partition, of chunks 0 and 1 unless said otherwise, what it did to the world, and a clock. For tests of the rules.
class PartitionHarness : public testing::Test, public PartitionSink {
 protected:
  explicit PartitionHarness(const std::vector<uint32_t>& chunks = {1, 0}) : partition_(chunks, kTimeout, this) {}

  bool IsFinite(uint32_t, const Contribution&) override { return !non_finite_; }
  void Apply(const ChunkRules::Update& update) override { applied_.push_back(update.chunk); }
  void Answer(const PartitionReply& reply) override {
    EXPECT_TRUE(replies_.emplace(reply.token, reply).second) << "answered twice: " << reply.token;
  }
  void Capture(uint64_t token, uint32_t chunk) override {
    captured_[token].push_back({chunk, partition_.Find(chunk)->version()});
  }
  void CaptureCut(const v1::Cut& cut, uint32_t chunk) override {
    cut_[cut.id()].push_back({chunk, partition_.Find(chunk)->version()});
  }
  void Log(const v1::UpdateLogRecord& record) override { log_.push_back(record); }

  uint64_t Send(PartitionRequest::Kind kind, uint32_t worker, uint64_t generation, int64_t step,
                std::vector<uint32_t> chunks, uint64_t incarnation = 1) {
    PartitionRequest request;
    request.token = ++last_token_;
    request.kind = kind;
    request.task = Worker(worker, incarnation);
    request.generation = generation;
    request.step = step;
    request.chunks = std::move(chunks);
    for (size_t i = 0; kind == PartitionRequest::Kind::kPushPull && i < request.chunks.size(); ++i) {
      request.contributions.push_back(PushOf(HeaderOf(request.task, generation, step)));
    }
    partition_.OnRequest(std::move(request), now_);
    return last_token_;
  }
  uint64_t Pull(uint32_t worker, uint64_t generation, int64_t step, std::vector<uint32_t> chunks = {0, 1}) {
    return Send(PartitionRequest::Kind::kPull, worker, generation, step, std::move(chunks));
  }
  uint64_t Push(uint32_t worker, uint64_t generation, int64_t step, std::vector<uint32_t> chunks = {0, 1}) {
    return Send(PartitionRequest::Kind::kPushPull, worker, generation, step, std::move(chunks));
  }
  uint64_t Snapshot(int64_t step, std::vector<uint32_t> chunks = {0, 1}) {
    return Send(PartitionRequest::Kind::kSnapshot, 9, 0, step, std::move(chunks));
  }
  void Pass(absl::Duration duration) {
    now_ += duration;
    partition_.OnTick(now_);
  }
  bool Answered(uint64_t token) const { return replies_.contains(token); }
  void ExpectAnswer(uint64_t token, v1::ExchangeReply::Outcome outcome,
                    v1::ExchangeReply::PushOutcome push = v1::ExchangeReply::PUSH_NONE) {
    ASSERT_TRUE(Answered(token)) << token;
    EXPECT_EQ(replies_[token].outcome, outcome) << replies_[token].message;
    EXPECT_EQ(replies_[token].push, push);
  }
  bool Says(uint64_t token, const std::string& part) { return replies_[token].message.find(part) != std::string::npos; }

  static constexpr absl::Duration kTimeout = absl::Seconds(2);

  absl::Time now_ = absl::UnixEpoch();
  Partition partition_;
  std::map<uint64_t, PartitionReply> replies_;
  std::map<uint64_t, std::vector<std::pair<uint32_t, int64_t>>> captured_;
  // By id: chunks and their versions, in order of capture.
  std::map<uint64_t, std::vector<std::pair<uint32_t, int64_t>>> cut_;
  std::vector<uint32_t> applied_;
  std::vector<v1::UpdateLogRecord> log_;
  bool non_finite_ = false;
  uint64_t last_token_ = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_TESTING_PARTITION_HARNESS_H_
