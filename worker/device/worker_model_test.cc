#include "worker/device/worker_model.h"

#include <gtest/gtest.h>

#include "common/clock.h"
#include "common/config/load.h"
#include "worker/device/testing/careful_backend.h"

namespace rubato::worker {
namespace {

constexpr char kJob[] = R"(
  name: "model"
  cluster { workers: 1 }
  model { input_shape: 2 layers { linear { units: 3 } } loss: SOFTMAX_CROSS_ENTROPY }
  data { teacher { train_examples: 100 } }
  optimizer { algorithm: SGD learning_rate: 0.1 }
  consistency { mode: SYNC }
  training { batch_size: 4 max_steps: 4 device: CUDA gpus: 2 }
)";

class WorkerModelTest : public testing::Test {
 protected:
  WorkerModelTest() : config_(*ParseJobConfig(kJob, "job.textproto", {})), spec_(*BuildModelSpec(config_.model())) {}

  std::unique_ptr<WorkerModel> Create(bool evaluates) {
    auto model = WorkerModel::Create(
        {.config = &config_,
         .spec = &spec_,
         .evaluates = evaluates,
         .factory = {.cuda = [](const CudaBackendOptions&) { return std::make_unique<CarefulBackend>(); }},
         .log = &log_});
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }

  const v1::JobConfig config_;
  const ModelSpec spec_;
  FakeClock clock_;
  Logger log_{"worker", &clock_};
};

// As it is when a worker is drained: a batch has been copied ahead, and is not computed any more.
TEST_F(WorkerModelTest, ABatchThatIsOnItsWayIsWaitedForBeforeItsMemoryGoes) {
  const std::unique_ptr<WorkerModel> model = Create(/*evaluates=*/false);
  ASSERT_EQ(model->model()->replicas().size(), 2u);
  const std::vector<float> inputs(4 * 2);
  const std::vector<int32_t> classes(4);
  ASSERT_TRUE(model->model()->StageInputs(inputs.data(), classes.data(), 4).ok());
}

TEST_F(WorkerModelTest, AnEvaluatorTakesOneDevice) {
  EXPECT_EQ(Create(/*evaluates=*/true)->model()->replicas().size(), 1u);
}

}  // namespace
}  // namespace rubato::worker
