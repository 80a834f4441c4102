// What a worker and an evaluator do before they join a job: nobody hears of those whose device or memory is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>

#include "common/config/load.h"
#include "common/health/health.h"
#include "kernels/testing/deferred_backend.h"
#include "worker/evaluator_task.h"
#include "worker/testing/shared_clock.h"
#include "worker/worker_task.h"

namespace rubato::worker {
namespace {

using ::testing::HasSubstr;

constexpr char kJob[] = R"(
  name: "start"
  cluster { workers: 1 evaluators: 1 }
  model { input_shape: 6 layers { linear { units: 3 } } loss: SOFTMAX_CROSS_ENTROPY }
  data { teacher { train_examples: 100 test_examples: 100 } }
  optimizer { algorithm: SGD learning_rate: 0.1 }
  consistency { mode: SYNC }
  training { batch_size: 16 max_steps: 4 device: CUDA step_timeout_seconds: 60 }
  evaluation { batch_size: 32 }
)";

// A device with so much memory, all of it free.
class SmallBackend : public DeferredBackend {
 public:
  absl::StatusOr<DeviceMemory> Memory() const override { return DeviceMemory{.total = 1000, .free = 1000}; }
};

template <typename Task>
class TaskStartTest : public testing::Test {
 protected:
  using CudaFactory = std::function<absl::StatusOr<std::unique_ptr<Backend>>(const CudaBackendOptions&)>;

  // Of a task with this device, in a job that has no coordinator: whoever asks for it fails with that.
  absl::Status Run(
      CudaFactory cuda, std::function<void()> abandon = [] {}) {
    typename Task::Options options;
    options.config = *ParseJobConfig(kJob, "job.textproto", {"run_directory=" + testing::TempDir() + "/start"});
    options.task.set_role(kEvaluates ? v1::TaskId::EVALUATOR : v1::TaskId::WORKER);
    options.task.set_incarnation(1);
    options.coordinator = "127.0.0.1:1";
    options.health = &health_;
    options.clock = &clock_;
    options.log = &log_;
    options.abandon = std::move(abandon);
    options.factory.cuda = std::move(cuda);
    Task task(std::move(options));
    absl::Status status = task.Run();
    refused_ = task.refused();
    return status;
  }

  static constexpr bool kEvaluates = std::is_same_v<Task, EvaluatorTask>;
  Health health_;
  SharedClock clock_;
  Logger log_{"task", &clock_};
  bool refused_ = false;
};

using Tasks = testing::Types<WorkerTask, EvaluatorTask>;
TYPED_TEST_SUITE(TaskStartTest, Tasks);

TYPED_TEST(TaskStartTest, RefusesADeviceThatIsNotThere) {
  const absl::Status status =
      this->Run([](const CudaBackendOptions&) { return absl::FailedPreconditionError("there is no driver"); });
  EXPECT_EQ(status.message(), "training.device: CUDA: there is no driver");
  EXPECT_TRUE(this->refused_);
}

TYPED_TEST(TaskStartTest, RefusesABatchThatDoesNotFit) {
  const absl::Status status = this->Run([](const CudaBackendOptions&) { return std::make_unique<SmallBackend>(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(this->kEvaluates ? "evaluation.batch_size: value 32; allowed: "
                                                                        : "training.batch_size: value 16; allowed: "));
  EXPECT_TRUE(this->refused_);
}

TYPED_TEST(TaskStartTest, ADeviceThatFailsMayDoBetterNextTime) {
  const absl::Status status =
      this->Run([](const CudaBackendOptions&) { return absl::InternalError("the GPU is gone"); });
  EXPECT_EQ(status.message(), "training.device: CUDA: the GPU is gone");
  EXPECT_FALSE(this->refused_);
}

TYPED_TEST(TaskStartTest, GivesUpADeviceThatHangsWhenItIsOpened) {
  std::atomic<bool> abandoned = false;
  const absl::Status status = this->Run(
      [&](const CudaBackendOptions&) {
        while (!abandoned) {
          this->clock_.Sleep(absl::Seconds(1));
          std::this_thread::yield();
        }
        return absl::InternalError("given up");
      },
      [&] { abandoned = true; });
  EXPECT_EQ(status.message(), "training.device: CUDA: given up");
  EXPECT_THAT(this->log_.last_problem(), HasSubstr("the start has been with the device for "));
  EXPECT_THAT(this->log_.last_problem(), HasSubstr("it waits in \"open the device and allocate the model\"; gives up"));
}

}  // namespace
}  // namespace rubato::worker
