#include "worker/training/static_source.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "common/clock.h"

namespace rubato::worker {
namespace {

class CountingDataset : public Dataset {
 public:
  explicit CountingDataset(int64_t size) : Dataset({size, {1}, LabelKind::kClasses, 0}) {}

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float*, uint64_t*,
                            uint32_t*) const override {
    for (int64_t i = 0; i < n; ++i) {
      inputs[i] = static_cast<float>(indices[i]);
      classes[i] = 0;
    }
    return absl::OkStatus();
  }
};

class StaticSourceTest : public testing::Test {
 protected:
  static constexpr int64_t kExamples = 20;

  StaticSourceTest() {
    config_.mutable_training()->set_batch_size(4);
    config_.mutable_training()->set_epochs(2);
    config_.mutable_data()->set_prefetch_batches(2);
  }

  v1::Plan PlanOf(int members, uint64_t generation = 1, int64_t first_step = 0, int64_t first_example = 0) {
    v1::Plan plan;
    plan.set_generation(generation);
    plan.set_mode(v1::SYNC);
    plan.set_first_step(first_step);
    plan.set_first_example(first_example);
    for (int i = 0; i < members; ++i) *plan.add_members() = Task(i);
    return plan;
  }

  static v1::TaskId Task(uint32_t index) {
    v1::TaskId task;
    task.set_role(v1::TaskId::WORKER);
    task.set_index(index);
    task.set_incarnation(index + 1);
    return task;
  }

  struct Worker {
    std::unique_ptr<Prefetcher> prefetcher;
    std::unique_ptr<StaticSource> source;
  };

  Worker Make(uint32_t index, int64_t examples_per_step = 4) {
    Prefetcher::Options options;
    options.dataset = std::make_shared<CountingDataset>(kExamples);
    options.clock = &clock_;
    options.seed = 5;
    options.batch_size = examples_per_step;
    options.queue_batches = 2;
    Worker worker;
    worker.prefetcher = *Prefetcher::Create(options);
    worker.source = std::make_unique<StaticSource>(
        StaticSource::Options{&config_, Task(index), kExamples, worker.prefetcher.get()});
    return worker;
  }

  RealClock clock_;
  v1::JobConfig config_;
};

TEST_F(StaticSourceTest, GivesEveryExampleOnceAnEpochAndThenIsDone) {
  Worker workers[] = {Make(0), Make(1)};
  v1::Plan plan = PlanOf(2);
  std::vector<std::multiset<float>> seen(2);
  int64_t step = 0;
  for (;; ++step) {
    bool done = false;
    for (Worker& worker : workers) {
      absl::StatusOr<BatchSource::Next> next = worker.source->Get({1, step, plan});
      ASSERT_TRUE(next.ok()) << next.status();
      done = next->kind == BatchSource::Kind::kDone;
      if (next->kind == BatchSource::Kind::kBatch) {
        seen[next->batch->epoch].insert(next->batch->inputs.begin(),
                                        next->batch->inputs.begin() + next->batch->examples);
      }
      worker.source->Begun();
    }
    if (done) break;
  }
  EXPECT_EQ(step, 6);  // 20 examples in steps of 8: three steps an epoch.
  for (const auto& epoch : seen) {
    EXPECT_EQ(epoch.size(), 20u);
    EXPECT_EQ(std::set<float>(epoch.begin(), epoch.end()).size(), 20u);
  }
}

TEST_F(StaticSourceTest, GivesTheSameBatchAgainWhenTheStepDidNotBegin) {
  Worker worker = Make(0);
  v1::Plan plan = PlanOf(1);
  std::vector<float> first = worker.source->Get({1, 0, plan})->batch->inputs;
  EXPECT_EQ(worker.source->Get({1, 0, plan})->batch->inputs, first);
  worker.source->Begun();
  EXPECT_NE(worker.source->Get({1, 1, plan})->batch->inputs, first);
}

TEST_F(StaticSourceTest, KnowsTheNextBatchAhead) {
  Worker worker = Make(0);
  const v1::Plan plan = PlanOf(1);
  for (int64_t step = 0; step < 3; ++step) {
    worker.source->Get({1, step, plan}).IgnoreError();
    worker.source->Begun();
    while (worker.source->Upcoming() == nullptr) clock_.Sleep(absl::Milliseconds(1));
    const Batch upcoming = *worker.source->Upcoming();
    const absl::StatusOr<BatchSource::Next> next = worker.source->Get({1, step + 1, plan});
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(next->batch->begin, upcoming.begin);
    EXPECT_EQ(next->batch->inputs, upcoming.inputs);
  }
}

// Worker 0 hears of the plan from the coordinator, worker 1 from a server that knows already that a third one is lost.
TEST_F(StaticSourceTest, AnAmendedPlanMovesNobodysPart) {
  Worker workers[] = {Make(0), Make(1)};
  v1::Plan plan = PlanOf(3);
  for (uint32_t index = 0; index < 3; ++index) plan.add_decided_members(index);
  v1::Plan amended = plan;
  amended.set_amendment(1);
  amended.mutable_members()->RemoveLast();
  const absl::StatusOr<BatchSource::Next> first = workers[0].source->Get({1, 1, plan});
  const absl::StatusOr<BatchSource::Next> second = workers[1].source->Get({1, 1, amended});
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->batch->begin, 12);
  EXPECT_EQ(second->batch->begin, 16);
}

TEST_F(StaticSourceTest, FollowsANewPlan) {
  Worker worker = Make(0);
  worker.source->Get({1, 0, PlanOf(2)}).IgnoreError();
  worker.source->Begun();
  // One member now, from example 8 on.
  absl::StatusOr<BatchSource::Next> next = worker.source->Get({2, 1, PlanOf(1, 2, 1, 8)});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->batch->begin, 8);
  EXPECT_EQ(next->batch->end, 12);
}

TEST_F(StaticSourceTest, StopsAtTheLastStep) {
  config_.mutable_training()->set_max_steps(1);
  Worker worker = Make(0);
  EXPECT_EQ(worker.source->Get({1, 0, PlanOf(1)})->kind, BatchSource::Kind::kBatch);
  worker.source->Begun();
  EXPECT_EQ(worker.source->Get({1, 1, PlanOf(1)})->kind, BatchSource::Kind::kDone);
}

TEST_F(StaticSourceTest, AStepOfLocalSgdTakesSeveralBatches) {
  config_.mutable_consistency()->set_sync_every(2);
  Worker workers[] = {Make(0, 8), Make(1, 8)};
  const v1::Plan plan = PlanOf(2);
  // 20 examples in steps of 16: two steps an epoch.
  const int64_t expected[2][4] = {{8, 4, 8, 4}, {8, 0, 8, 0}};
  for (int64_t step = 0; step < 4; ++step) {
    for (int w = 0; w < 2; ++w) {
      absl::StatusOr<BatchSource::Next> next = workers[w].source->Get({1, step, plan});
      ASSERT_TRUE(next.ok()) << next.status();
      EXPECT_EQ(next->batch == nullptr ? 0 : next->batch->examples, expected[w][step]) << step;
      EXPECT_DOUBLE_EQ(next->epoch, static_cast<double>(step / 2) + (step % 2 == 0 ? 0 : 0.8));
      // Both members move on together.
      EXPECT_DOUBLE_EQ(next->epochs_per_example, next->batch == nullptr ? 0 : 0.1);
      workers[w].source->Begun();
    }
  }
  EXPECT_EQ(workers[0].source->Get({1, 4, plan})->kind, BatchSource::Kind::kDone);
}

TEST_F(StaticSourceTest, RefusesAPlanWithoutThisWorker) {
  Worker worker = Make(3);
  EXPECT_TRUE(absl::IsAborted(worker.source->Get({1, 0, PlanOf(2)}).status()));
}

}  // namespace
}  // namespace rubato::worker
