#include "worker/training/dynamic_source.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"

namespace rubato::worker {
namespace {

class ZeroDataset : public Dataset {
 public:
  ZeroDataset() : Dataset({100, {1}, LabelKind::kClasses, 0}) {}

 private:
  absl::Status ReadExamples(const int64_t*, int64_t n, float* inputs, int32_t* classes, float*, uint64_t*,
                            uint32_t*) const override {
    for (int64_t i = 0; i < n; ++i) inputs[i] = static_cast<float>(classes[i] = 0);
    return absl::OkStatus();
  }
};

// Moves by `tick` whenever it is looked at.
class TickingClock : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + absl::Milliseconds(now_ms_.fetch_add(tick_ms_)); }
  void Sleep(absl::Duration duration) override { now_ms_ += absl::ToInt64Milliseconds(duration); }
  void SetTick(int64_t milliseconds) { tick_ms_ = milliseconds; }

 private:
  mutable std::atomic<int64_t> now_ms_ = 0;
  std::atomic<int64_t> tick_ms_ = 0;
};

class DynamicSourceTest : public testing::Test {
 protected:
  DynamicSourceTest() {
    config_.mutable_training()->set_batch_size(4);
    config_.mutable_data()->set_prefetch_batches(2);
    step_.plan.set_mode(v1::SYNC);
    Prefetcher::Options prefetch;
    prefetch.dataset = std::make_shared<ZeroDataset>();
    prefetch.clock = &real_clock_;
    prefetch.batch_size = 4;
    prefetch.queue_batches = 2;
    prefetcher_ = *Prefetcher::Create(prefetch);
    source_ = std::make_unique<DynamicSource>(
        DynamicSource::Options{.config = &config_,
                               .worker = 1,
                               .train_examples = 100,
                               .prefetcher = prefetcher_.get(),
                               .send = [this](const v1::ShardRequest& request) { sent_.push_back(request); },
                               .clock = &clock_});
  }

  // A step with no shard, which nobody has answered for yet: it is given up as the clock ticks.
  void AskInVain() {
    clock_.SetTick(20);
    EXPECT_EQ(source_->Get(step_)->kind, BatchSource::Kind::kEmpty);
    clock_.SetTick(0);
  }

  void Answer(v1::ShardGrant::Result result) {
    v1::ShardGrant grant;
    grant.set_request_id(sent_.back().request_id());
    grant.set_result(result);
    grant.set_shard(1);
    grant.set_begin(0);
    grant.set_end(8);
    source_->OnGrant(grant);
  }

  void Grant(uint64_t shard, int64_t begin, int64_t end) {
    v1::ShardGrant grant;
    grant.set_request_id(sent_.back().request_id());
    grant.set_result(v1::ShardGrant::GRANTED);
    grant.set_shard(shard);
    grant.set_begin(begin);
    grant.set_end(end);
    source_->OnGrant(grant);
  }

  // "1:4 2:8", by shard.
  std::string Positions() {
    std::string text;
    for (const v1::ShardPosition& position : source_->Positions()) {
      absl::StrAppend(&text, text.empty() ? "" : " ", position.shard(), ":", position.next());
    }
    return text;
  }

  RealClock real_clock_;
  TickingClock clock_;
  v1::JobConfig config_;
  Parameters::Step step_;
  std::vector<v1::ShardRequest> sent_;
  std::unique_ptr<Prefetcher> prefetcher_;
  std::unique_ptr<DynamicSource> source_;
};

TEST_F(DynamicSourceTest, AStepHasAsManyBatchesAsThePlanSays) {
  config_.mutable_consistency()->add_schedule()->set_sync_every(8);
  step_.plan.set_generation(1);
  step_.plan.set_sync_every(3);
  AskInVain();
  Grant(1, 0, 20);
  for (int64_t examples : {12, 8}) {
    const absl::StatusOr<BatchSource::Next> next = source_->Get(step_);
    ASSERT_EQ(next->kind, BatchSource::Kind::kBatch);
    EXPECT_EQ(next->batch->examples, examples);
    source_->Begun();
  }
}

TEST_F(DynamicSourceTest, GivesTheBatchesOfAShardAndReportsItOnceItIsAcknowledged) {
  AskInVain();
  Answer(v1::ShardGrant::GRANTED);
  for (int batch = 0; batch < 2; ++batch) {
    EXPECT_EQ(source_->Get(step_)->kind, BatchSource::Kind::kBatch);
    source_->Begun();
  }
  EXPECT_EQ(sent_.back().finished_shards_size(), 0);
  Answer(v1::ShardGrant::NONE_NOW);
  EXPECT_EQ(source_->Get(step_)->kind, BatchSource::Kind::kEmpty);
  source_->Begun();
  ASSERT_EQ(sent_.back().finished_shards_size(), 1);
  EXPECT_EQ(sent_.back().finished_shards(0), 1u);
  Answer(v1::ShardGrant::DONE);
  EXPECT_EQ(source_->Get(step_)->kind, BatchSource::Kind::kDone);
}

// What is ready when the plan comes stays as it is: nothing is read twice.
TEST_F(DynamicSourceTest, BatchesThatArePreparedUnderAPlanHaveItsSize) {
  config_.mutable_consistency()->set_policy(v1::ConsistencyConfig::BALANCE);
  config_.mutable_consistency()->mutable_balance()->set_batch_max(2);
  step_.plan.set_generation(2);
  for (uint32_t index : {0u, 1u}) step_.plan.add_decided_members(index);
  for (uint32_t size : {2u, 6u}) step_.plan.add_batch_sizes(size);
  AskInVain();
  Grant(1, 0, 14);
  for (int64_t examples : {6, 6, 2}) {
    const absl::StatusOr<BatchSource::Next> next = source_->Get(step_);
    ASSERT_EQ(next->kind, BatchSource::Kind::kBatch);
    EXPECT_EQ(next->batch->examples, examples);
    source_->Begun();
  }
}

// Not only when the coordinator has heard of the last step: no worker does more.
TEST_F(DynamicSourceTest, EndsWithTheLastStepInTheMiddleOfAShard) {
  config_.mutable_training()->set_max_steps(7);
  AskInVain();
  Answer(v1::ShardGrant::GRANTED);
  step_.step = 6;
  EXPECT_EQ(source_->Get(step_)->kind, BatchSource::Kind::kBatch);
  source_->Begun();
  step_.step = 7;
  EXPECT_EQ(source_->Get(step_)->kind, BatchSource::Kind::kDone);
}

TEST_F(DynamicSourceTest, SaysWhereTheBatchIsAndByHowMuchEachExampleMovesOn) {
  AskInVain();
  Answer(v1::ShardGrant::GRANTED);
  for (double epoch : {0.0, 0.04}) {
    const BatchSource::Next next = *source_->Get(step_);
    EXPECT_DOUBLE_EQ(next.epoch, epoch);
    EXPECT_DOUBLE_EQ(next.epochs_per_example, 0.01);
    source_->Begun();
  }
}

TEST_F(DynamicSourceTest, AWorkerThatStopsReportsTheShardThatItHasJustFinished) {
  AskInVain();
  Answer(v1::ShardGrant::GRANTED);
  for (int batch = 0; batch < 2; ++batch) {
    EXPECT_EQ(source_->Get(step_)->kind, BatchSource::Kind::kBatch);
    source_->Begun();
  }
  const uint64_t last = sent_.back().request_id();
  source_->Stopped();
  EXPECT_EQ(sent_.back().request_id(), last + 1);
  ASSERT_EQ(sent_.back().finished_shards_size(), 1);
  EXPECT_EQ(sent_.back().finished_shards(0), 1u);
}

TEST_F(DynamicSourceTest, AWorkerThatStopsInsideAShardReportsNothing) {
  AskInVain();
  Answer(v1::ShardGrant::GRANTED);
  EXPECT_EQ(source_->Get(step_)->kind, BatchSource::Kind::kBatch);
  source_->Begun();
  source_->Stopped();
  for (const v1::ShardRequest& request : sent_) EXPECT_EQ(request.finished_shards_size(), 0);
}

// The clock stands still: a step that waits would wait for ever.
TEST_F(DynamicSourceTest, StepsWithoutAShardDoNotWaitForAnAnswerEach) {
  AskInVain();
  Answer(v1::ShardGrant::NONE_NOW);
  for (int i = 0; i < 3; ++i) {
    clock_.Sleep(absl::Milliseconds(5));
    EXPECT_EQ(source_->Get(step_)->kind, BatchSource::Kind::kEmpty);
    source_->Begun();
  }
  EXPECT_EQ(sent_.size(), 1u);
}

TEST_F(DynamicSourceTest, StepsDoNotWaitForACoordinatorThatIsAway) {
  AskInVain();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(source_->Get(step_)->kind, BatchSource::Kind::kEmpty);
    source_->Begun();
  }
  clock_.Sleep(absl::Seconds(1));
  EXPECT_EQ(source_->Get(step_)->kind, BatchSource::Kind::kEmpty);
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[1].request_id(), sent_[0].request_id());
}

TEST_F(DynamicSourceTest, AsksAgainSoonAfterItWasToldThatThereIsNothing) {
  AskInVain();
  Answer(v1::ShardGrant::NONE_NOW);
  clock_.Sleep(absl::Milliseconds(20));
  AskInVain();
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[1].request_id(), sent_[0].request_id() + 1);
}

TEST_F(DynamicSourceTest, SaysHowFarItIsInEveryShardThatItHolds) {
  EXPECT_EQ(Positions(), "");
  AskInVain();
  Grant(1, 0, 8);
  EXPECT_EQ(Positions(), "1:0");
  // What the step to begin computes is not behind it.
  EXPECT_EQ(source_->Get(step_)->kind, BatchSource::Kind::kBatch);
  EXPECT_EQ(Positions(), "1:0");
  source_->Begun();
  // The next one, which nobody has begun with, is the rest of a shard.
  Grant(2, 14, 18);
  EXPECT_EQ(source_->Get(step_)->batch->begin, 4);
  EXPECT_EQ(Positions(), "1:4 2:14");
  source_->Begun();
  EXPECT_EQ(source_->Get(step_)->batch->begin, 14);
  // All of the first one is pushed when this step begins, which is reported then.
  EXPECT_EQ(Positions(), "1:8 2:14");
  source_->Begun();
  // The answer to an earlier request does not confirm the report.
  Answer(v1::ShardGrant::NONE_NOW);
  AskInVain();
  ASSERT_EQ(sent_.back().finished_shards_size(), 1);
  EXPECT_EQ(Positions(), "1:8 2:18");
  Answer(v1::ShardGrant::NONE_NOW);
  EXPECT_EQ(Positions(), "2:18");
  source_->Begun();  // An empty step.
  EXPECT_EQ(Positions(), "2:18");
}

TEST_F(DynamicSourceTest, AnEmptyStepHasTheShardsThatHaveComeMeanwhile) {
  AskInVain();
  Grant(3, 20, 28);
  EXPECT_EQ(Positions(), "3:20");
  source_->Begun();
  EXPECT_EQ(Positions(), "3:20");
}

}  // namespace
}  // namespace rubato::worker
