// A reader that hangs costs its worker the step's time, and no more.
#include "worker/training/read_batch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "worker/testing/shared_clock.h"
#include "worker/training/dynamic_source.h"
#include "worker/training/static_source.h"

namespace rubato::worker {
namespace {

// Whose reads do not return before they are given up. Meanwhile time passes.
class HangingDataset : public Dataset {
 public:
  explicit HangingDataset(SharedClock* clock) : Dataset({100, {1}, LabelKind::kClasses, 0}), clock_(clock) {}
  void GiveUp() { given_up_ = true; }

 private:
  absl::Status ReadExamples(const int64_t*, int64_t, float*, int32_t*, float*, uint64_t*, uint32_t*) const override {
    while (!given_up_) {
      clock_->Sleep(absl::Seconds(1));
      std::this_thread::yield();
    }
    return absl::UnavailableError("given up");
  }

  SharedClock* const clock_;
  std::atomic<bool> given_up_ = false;
};

class ReadBatchTest : public testing::Test {
 protected:
  ReadBatchTest() {
    config_.mutable_training()->set_batch_size(4);
    config_.mutable_training()->set_max_steps(10);
    config_.mutable_data()->set_prefetch_batches(2);
    step_.generation = 1;
    step_.plan.set_generation(1);
    step_.plan.set_mode(v1::SYNC);
    step_.plan.add_members()->set_role(v1::TaskId::WORKER);
    task_.set_role(v1::TaskId::WORKER);
    Prefetcher::Options prefetch;
    prefetch.dataset = dataset_;
    prefetch.clock = &real_clock_;
    prefetch.batch_size = 4;
    prefetch.queue_batches = 2;
    prefetcher_ = *Prefetcher::Create(prefetch);
    watchdog_ = std::make_unique<StepWatchdog>(StepWatchdog::Options{.limit = absl::Seconds(60),
                                                                     .clock = &clock_,
                                                                     .poll = absl::Milliseconds(1),
                                                                     .on_expired = [this](const std::string& text) {
                                                                       what_ = text;
                                                                       dataset_->GiveUp();
                                                                     }});
    watchdog_->Begin("step 0");
  }

  // The source waits for a batch, and its watchdog notices.
  void ExpectNoticed(BatchSource* source) {
    EXPECT_EQ(source->Get(step_).status().code(), absl::StatusCode::kUnavailable);
    watchdog_.reset();
    EXPECT_EQ(what_.find("step 0 has waited for the reader of its data for "), 0u) << what_;
    EXPECT_NE(what_.find("longer than training.step_timeout_seconds, 1m; it waits in \"read a batch\""),
              std::string::npos)
        << what_;
  }

  RealClock real_clock_;
  SharedClock clock_;
  std::shared_ptr<HangingDataset> dataset_ = std::make_shared<HangingDataset>(&clock_);
  v1::JobConfig config_;
  v1::TaskId task_;
  Parameters::Step step_;
  std::string what_;
  std::unique_ptr<Prefetcher> prefetcher_;
  std::unique_ptr<StepWatchdog> watchdog_;
};

TEST_F(ReadBatchTest, AReaderThatHangsIsNoticedWhereThePlanGivesOutTheData) {
  StaticSource source({&config_, task_, 100, prefetcher_.get(), watchdog_.get()});
  ExpectNoticed(&source);
}

TEST_F(ReadBatchTest, AReaderThatHangsIsNoticedWhereTheCoordinatorGivesOutTheData) {
  v1::ShardRequest sent;
  DynamicSource source({&config_, task_.index(), 100, prefetcher_.get(),
                        [&](const v1::ShardRequest& request) { sent = request; }, &real_clock_, watchdog_.get()});
  EXPECT_EQ(source.Get(step_)->kind, BatchSource::Kind::kEmpty);
  v1::ShardGrant grant;
  grant.set_request_id(sent.request_id());
  grant.set_result(v1::ShardGrant::GRANTED);
  grant.set_end(8);
  source.OnGrant(grant);
  ExpectNoticed(&source);
}

TEST_F(ReadBatchTest, WaitingForTheCoordinatorIsNoTimeOfTheReader) {
  // Long in the eyes of the watchdog, which looks at the clock many times before the source gives the step up.
  DynamicSource source({&config_, task_.index(), 100, prefetcher_.get(),
                        [&](const v1::ShardRequest&) { clock_.Sleep(absl::Hours(1)); }, &real_clock_, watchdog_.get()});
  EXPECT_EQ(source.Get(step_)->kind, BatchSource::Kind::kEmpty);
  watchdog_.reset();
  EXPECT_EQ(what_, "");
  dataset_->GiveUp();
}

}  // namespace
}  // namespace rubato::worker
