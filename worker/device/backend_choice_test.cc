#include "worker/device/backend_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato::worker {
namespace {

using ::testing::HasSubstr;

v1::TrainingConfig Config(v1::TrainingConfig::Device device) {
  v1::TrainingConfig config;
  config.set_device(device);
  config.set_device_index(3);
  config.set_precision(v1::TrainingConfig::BF16);
  config.set_compute_threads(1);
  return config;
}

// A machine whose GPUs answer with this; a CPU stands for a GPU that works.
class BackendChoiceTest : public ::testing::Test {
 protected:
  absl::StatusOr<ChosenBackend> Choose(v1::TrainingConfig::Device device, absl::Status gpu,
                                       absl::StatusOr<int> seen = 0) {
    BackendFactory factory;
    factory.count_gpus = [seen] { return seen; };
    factory.cuda = [this, gpu](const CudaBackendOptions& options) -> absl::StatusOr<std::unique_ptr<Backend>> {
      asked_ = options;
      if (!gpu.ok()) return gpu;
      return CreateCpuBackend({});
    };
    return ChooseBackend(Config(device), {}, factory);
  }

  std::optional<CudaBackendOptions> asked_;
};

TEST_F(BackendChoiceTest, CudaTakesTheGpuThatTheConfigNames) {
  auto chosen = Choose(v1::TrainingConfig::CUDA, absl::OkStatus());
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  ASSERT_TRUE(asked_.has_value());
  EXPECT_EQ(asked_->device_index, 3);
  EXPECT_EQ(asked_->precision, MatrixPrecision::kBf16);
  EXPECT_THAT(chosen->description, HasSubstr("BF16"));
  EXPECT_EQ(chosen->precision, v1::TrainingConfig::BF16);
  EXPECT_TRUE(asked_->graphs);
  EXPECT_TRUE(asked_->cudnn);
  EXPECT_TRUE(asked_->fused_attention);
}

TEST_F(BackendChoiceTest, CudaDoesWithoutWhatTheConfigForbids) {
  BackendFactory factory;
  factory.cuda = [this](const CudaBackendOptions& options) {
    asked_ = options;
    return CreateCpuBackend({});
  };
  v1::TrainingConfig config = Config(v1::TrainingConfig::CUDA);
  config.set_no_cuda_graphs(true);
  config.set_no_cudnn(true);
  config.set_no_fused_attention(true);
  ASSERT_TRUE(ChooseBackend(config, {}, factory).ok());
  EXPECT_FALSE(asked_->graphs);
  EXPECT_FALSE(asked_->cudnn);
  EXPECT_FALSE(asked_->fused_attention);
}

TEST_F(BackendChoiceTest, SeveralGpusAreThoseFromTheIndexOn) {
  std::vector<int> asked;
  BackendFactory factory;
  factory.cuda = [&](const CudaBackendOptions& options) -> absl::StatusOr<std::unique_ptr<Backend>> {
    asked.push_back(options.device_index);
    if (options.device_index > 5) return absl::FailedPreconditionError("there is no GPU 6");
    return CreateCpuBackend({});
  };
  v1::TrainingConfig config = Config(v1::TrainingConfig::AUTO);
  config.set_gpus(3);
  const auto chosen = ChooseBackend(config, {}, factory);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(asked, (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(chosen->peers.size(), 2u);
  EXPECT_EQ(chosen->description, "cpu and cpu and cpu, BF16");

  // Not what the machine has, and no reason to go without any.
  config.set_gpus(4);
  EXPECT_EQ(ChooseBackend(config, {}, factory).status().message(),
            "training.device: AUTO: training.gpus: value 4 with device_index 3: there is no GPU 6");
}

TEST_F(BackendChoiceTest, CudaFailsWithWhatIsMissing) {
  auto chosen = Choose(v1::TrainingConfig::CUDA, absl::FailedPreconditionError("there is no driver"));
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(chosen.status().message(), "training.device: CUDA: there is no driver");
}

TEST_F(BackendChoiceTest, AutoTakesTheCpuWhereThereIsNoGpuAndSaysWhy) {
  auto chosen = Choose(v1::TrainingConfig::AUTO, absl::FailedPreconditionError("there is no driver"));
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->backend->Name(), "cpu");
  EXPECT_EQ(chosen->description, "cpu, 1 thread: there is no driver");
  EXPECT_EQ(chosen->precision, v1::TrainingConfig::FP32);
  EXPECT_EQ(chosen->warning, "");
}

TEST_F(BackendChoiceTest, AutoRefusesAnIndexThatNoneOfTheGpusHas) {
  const absl::Status missing = absl::FailedPreconditionError("there is no GPU 3: this machine has 2 GPUs");
  const absl::Status status = Choose(v1::TrainingConfig::AUTO, missing, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "training.device_index: value 3; allowed: 0 to 1, the GPUs of this machine");
}

TEST_F(BackendChoiceTest, AutoWarnsWhereThereIsAGpuThatCannotBeUsed) {
  const absl::Status no_library = absl::FailedPreconditionError("cuBLAS cannot be loaded");
  auto chosen = Choose(v1::TrainingConfig::AUTO, no_library, 4);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->description, "cpu, 1 thread: cuBLAS cannot be loaded");
  EXPECT_EQ(chosen->warning,
            "training.device: AUTO takes the CPU, because the GPU cannot be used: cuBLAS cannot be loaded; "
            "training.precision is BF16, and the CPU computes in FP32");

  // A driver that is too old does not say how many there are.
  const absl::Status too_old = absl::FailedPreconditionError("update the driver");
  chosen = Choose(v1::TrainingConfig::AUTO, too_old, too_old);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_THAT(chosen->warning, HasSubstr("update the driver"));
}

TEST_F(BackendChoiceTest, AutoDoesNotHideAGpuThatFails) {
  auto chosen = Choose(v1::TrainingConfig::AUTO, absl::InternalError("the GPU is broken"));
  EXPECT_EQ(chosen.status().code(), absl::StatusCode::kInternal);
}

TEST_F(BackendChoiceTest, CpuDoesNotAskForAGpu) {
  auto chosen = Choose(v1::TrainingConfig::CPU, absl::OkStatus());
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_FALSE(asked_.has_value());
  EXPECT_EQ(chosen->description, "cpu, 1 thread");
}

TEST(BackendChoiceOnThisMachineTest, AutoAlwaysFindsSomething) {
  v1::TrainingConfig config = Config(v1::TrainingConfig::AUTO);
  config.set_device_index(0);
  auto chosen = ChooseBackend(config, {}, {.cuda = CreateCudaBackend, .count_gpus = CountCudaDevices});
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_FALSE(chosen->description.empty());
}

}  // namespace
}  // namespace rubato::worker
