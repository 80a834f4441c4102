#include "worker/training/tensor_reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/training/testing/trainer_fixture.h"

namespace rubato::worker {
namespace {

class TensorReporterTest : public TrainerTest {
 protected:
  void Report(int64_t every_steps, bool is_reporter) {
    TensorReporter::Options options;
    options.every_steps = every_steps;
    options.spec = &spec_;
    options.model = model_.get();
    options.backend = backend_.get();
    options.is_reporter = [is_reporter] { return is_reporter; };
    options.send = [this](v1::TensorReport report) { reports_.push_back(std::move(report)); };
    reporter_.emplace(std::move(options));
    tensors_ = &*reporter_;
  }
  std::vector<int64_t> Steps() {
    std::vector<int64_t> steps;
    for (const v1::TensorReport& report : reports_) steps.push_back(report.step());
    return steps;
  }

  std::optional<TensorReporter> reporter_;
  std::vector<v1::TensorReport> reports_;
  v1::WorkerProgress progress_;
};

TEST_F(TensorReporterTest, DescribesWeightsAndGradientsOfEveryFewSteps) {
  Report(2, true);
  StreamSource source(5, 1);
  ASSERT_TRUE(Run(&source, &progress_).ok());
  EXPECT_THAT(Steps(), testing::ElementsAre(0, 2, 4));
  const v1::TensorReport& first = reports_[0];
  ASSERT_EQ(first.tensors_size(), 4);
  EXPECT_EQ(first.tensors(0).tensor(), "only.weight");
  EXPECT_EQ(first.tensors(0).kind(), v1::TensorStatistics::WEIGHTS);
  EXPECT_EQ(first.tensors(0).elements(), 4);
  // The model begins with zeros.
  EXPECT_EQ(first.tensors(0).sum_squares(), 0);
  EXPECT_EQ(first.tensors(1).kind(), v1::TensorStatistics::GRADIENT);
  EXPECT_GT(first.tensors(1).sum_squares(), 0);
  EXPECT_GT(reports_[1].tensors(0).sum_squares(), 0);
}

TEST_F(TensorReporterTest, IsSilentWhereAnotherWorkerReports) {
  Report(1, false);
  StreamSource source(3, 1);
  ASSERT_TRUE(Run(&source, &progress_).ok());
  EXPECT_TRUE(reports_.empty());
}

TEST_F(TensorReporterTest, IsSilentWhereNobodyAsks) {
  Report(0, true);
  StreamSource source(3, 1);
  ASSERT_TRUE(Run(&source, &progress_).ok());
  EXPECT_TRUE(reports_.empty());
}

TEST_F(TensorReporterTest, DescribesTheLastBatchOfAStepOfLocalSgd) {
  UseLocalSgd(2);
  Report(1, true);
  StreamSource source(2, 2);
  ASSERT_TRUE(Run(&source, &progress_).ok());
  EXPECT_THAT(Steps(), testing::ElementsAre(0, 1));
}

}  // namespace
}  // namespace rubato::worker
