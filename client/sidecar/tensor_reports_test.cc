#include "client/sidecar/tensor_reports.h"

#include <gtest/gtest.h>

#include <vector>

namespace rubato::client {
namespace {

class FakeMemory : public worker::PsClient::TensorMemory {
 public:
  float* Weights(int tensor, int64_t offset) override { return weights[tensor].data() + offset; }
  float* Gradient(int tensor, int64_t offset) override { return gradients[tensor].data() + offset; }

  std::vector<float> weights[2] = {{1, 2, 3}, {4}};
  std::vector<float> gradients[2] = {{0, 0, 6}, {5}};
};

class TensorReportsTest : public testing::Test {
 protected:
  TensorReportsTest() {
    for (int tensor = 0; tensor < 2; ++tensor) {
      TensorSpec& spec = spec_.tensors.emplace_back();
      spec.name = tensor == 0 ? "weight" : "bias";
      spec.shape = {static_cast<int64_t>(memory_.weights[tensor].size())};
    }
  }
  void Step(int64_t step) {
    reports_.BeginStep(step);
    reports_.BeforePush(1, /*absent=*/true);
    reports_.BeforePush(0, /*absent=*/false);
    reports_.EndStep(step);
  }

  FakeMemory memory_;
  ModelSpec spec_;
  bool is_reporter_ = true;
  std::vector<v1::TensorReport> sent_;
  TensorReports reports_{{.every_steps = 10,
                          .spec = &spec_,
                          .memory = &memory_,
                          .is_reporter = [this] { return is_reporter_; },
                          .send = [this](v1::TensorReport report) { sent_.push_back(std::move(report)); }}};
};

TEST_F(TensorReportsTest, TellsOfWeightsAndOfGradientsThatAreThere) {
  Step(0);
  ASSERT_EQ(sent_.size(), 1u);
  ASSERT_EQ(sent_[0].tensors_size(), 3);
  EXPECT_EQ(sent_[0].tensors(0).tensor(), "bias");
  EXPECT_EQ(sent_[0].tensors(0).kind(), v1::TensorStatistics::WEIGHTS);
  EXPECT_EQ(sent_[0].tensors(1).tensor(), "weight");
  EXPECT_EQ(sent_[0].tensors(2).kind(), v1::TensorStatistics::GRADIENT);
  EXPECT_EQ(sent_[0].tensors(2).sum(), 6);
}

TEST_F(TensorReportsTest, NowAndThenAndByOneWorkerAlone) {
  for (int64_t step = 0; step < 21; ++step) Step(step);
  ASSERT_EQ(sent_.size(), 3u);
  EXPECT_EQ(sent_[2].step(), 20);
  is_reporter_ = false;
  Step(30);
  EXPECT_EQ(sent_.size(), 3u);
}

TEST_F(TensorReportsTest, AStepThatDidNotEndIsForgotten) {
  reports_.BeginStep(0);
  reports_.BeforePush(0, /*absent=*/false);
  Step(10);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].tensors_size(), 3);
}

}  // namespace
}  // namespace rubato::client
