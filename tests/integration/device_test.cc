// Whole jobs whose workers compute on fake devices: some that hang or fail, some that overflow, several of
// one worker, some that encode their gradients. And on GPUs, if there are any.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/config/load.h"
#include "common/storage/file.h"
#include "kernels/backend_cuda.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/testing/deferred_backend.h"
#include "kernels/testing/hanging_backend.h"
#include "kernels/testing/small_range_backend.h"
#include "tests/integration/whole_job.h"
#include "worker/device/testing/careful_backend.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;

constexpr char kJob[] = R"(
  name: "device"
  # Nobody is evicted for silence.
  cluster { workers: 2 lease_seconds: 300 }
  model {
    input_shape: 6
    layers { linear { units: 8 } }
    layers { relu {} }
    layers { linear { units: 3 } }
    loss: SOFTMAX_CROSS_ENTROPY
  }
  data { teacher { train_examples: 4000 } }
  optimizer { algorithm: SGD learning_rate: 0.1 }
  consistency { mode: SYNC }
  training { batch_size: 16 max_steps: 40 device: CUDA step_timeout_seconds: 5 }
)";

v1::JobConfig Config(const std::string& name, std::vector<std::string> overrides) {
  const std::string directory = testing::TempDir() + "/" + name;
  overrides.push_back("run_directory=" + directory);
  auto config = ParseJobConfig(kJob, "job.textproto", overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

nlohmann::json LastLine(const v1::JobConfig& config, const std::string& kind) {
  std::istringstream lines(*ReadFile(config.run_directory() + "/metrics.jsonl"));
  nlohmann::json last;
  for (std::string line; std::getline(lines, line);) {
    auto json = nlohmann::json::parse(line);
    if (json.contains(kind)) last = json[kind];
  }
  return last;
}

std::vector<v1::TaskStatus> Workers(WholeJob* job) {
  const v1::JobStatus status = job->JobStatus();
  std::vector<v1::TaskStatus> workers;
  for (const v1::TaskStatus& task : status.tasks()) {
    if (task.task().role() == v1::TaskId::WORKER) workers.push_back(task);
  }
  EXPECT_EQ(workers.size(), 2u);
  return workers;
}

class DeviceTest : public testing::TestWithParam<const char*> {};

// The second of two workers is lost, with this reason, and the other one does all of its steps.
void ExpectSecondIsEvicted(WholeJob* job, const std::string& reason) {
  const absl::Status ended = job->AwaitEnd();
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_TRUE(job->WorkerStatus(0).ok()) << job->WorkerStatus(0);
  for (const v1::TaskStatus& task : Workers(job)) {
    const bool lost = task.task().index() == 1;
    EXPECT_EQ(task.state(), lost ? v1::TaskStatus::EVICTED : v1::TaskStatus::LEFT);
    EXPECT_THAT(task.reason(), HasSubstr(lost ? reason : ""));
    EXPECT_EQ(task.progress().steps_total() == 40, !lost);
  }
}

TEST_P(DeviceTest, AWorkerWhoseDeviceHangsIsEvictedAndTheOthersGoOn) {
  // In its fifth step, where each waits for the loss and for four gradients; and before its first, when it is a member
  // of the plan already.
  for (int answers : {1 + 4 * 5, 0}) {
    SCOPED_TRACE(answers);
    const v1::JobConfig config =
        Config(absl::StrCat("hang_", answers, GetParam()), {std::string("consistency.mode=") + GetParam()});
    WholeJob job(config);
    job.StartServer(0);
    job.StartWorker(0, std::make_unique<DeferredBackend>());
    auto device = std::make_unique<HangingBackend>(answers);
    HangingBackend* const hanging = device.get();
    job.StartWorker(1, std::move(device), [hanging] { hanging->GiveUp(); });
    ExpectSecondIsEvicted(&job, answers == 0 ? "the start has been with the reader of its data and the device for 5"
                                             : "step 4 has been with the device for 5");
    EXPECT_EQ(job.WorkerStatus(1).message(), "given up");
  }
}

// A device with an error in its sixth step, while gradients are in flight to the host: it refuses work, or some of
// what it has taken fails.
class FailingBackend : public worker::CarefulBackend {
 public:
  FailingBackend(absl::Status error, bool refuses) : error_(std::move(error)), refuses_(refuses) {}

  absl::Status DoCopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) override {
    // Each step copies the loss, two gradients of the last layer, and two of the first.
    if (++copies_ == 5 * 5 + 4) {
      if (refuses_) return error_;
      FailWith(error_);
    }
    return CarefulBackend::DoCopyToHost(from, offset, count, to);
  }

 private:
  const absl::Status error_;
  const bool refuses_;
  int copies_ = 0;
};

TEST_P(DeviceTest, AWorkerWhoseDeviceFailsIsEvictedAndTheOthersGoOn) {
  const absl::Status broken = absl::InternalError("the GPU is gone"), full = absl::ResourceExhaustedError("it is full");
  for (const absl::Status& error : {broken, full}) {
    SCOPED_TRACE(error);
    const v1::JobConfig config =
        Config(absl::StrCat("fail_", error.raw_code(), GetParam()), {std::string("consistency.mode=") + GetParam()});
    WholeJob job(config);
    job.StartServer(0);
    job.StartWorker(0, std::make_unique<DeferredBackend>());
    job.StartWorker(1, std::make_unique<FailingBackend>(error, error == full));
    ExpectSecondIsEvicted(&job, std::string(error.message()));
    EXPECT_EQ(job.WorkerStatus(1).code(), error.code());
  }
}

TEST(EvaluatorDeviceTest, AnEvaluatorWhoseDeviceHangsGivesUpAndTheJobGoesOn) {
  const v1::JobConfig config =
      Config("hanging_evaluator", {"cluster.evaluators=1", "cluster.lease_seconds=5", "data.teacher.test_examples=100",
                                   "training.step_timeout_seconds=1"});
  WholeJob job(config);
  job.StartServer(0);
  for (uint32_t worker : {0, 1}) job.StartWorker(worker, std::make_unique<DeferredBackend>());
  auto device = std::make_unique<HangingBackend>(0);
  HangingBackend* const hanging = device.get();
  job.StartEvaluator(0, std::move(device), [hanging] { hanging->GiveUp(); });
  const absl::Status ended = job.AwaitEnd();
  EXPECT_TRUE(ended.ok()) << ended;
  const v1::JobStatus status = job.JobStatus();
  for (const v1::TaskStatus& task : status.tasks()) {
    if (task.task().role() != v1::TaskId::EVALUATOR) continue;
    EXPECT_EQ(task.state(), v1::TaskStatus::EVICTED);
    EXPECT_THAT(task.reason(), HasSubstr("evaluation 1 has been with the device for 1"));
    EXPECT_THAT(task.reason(), HasSubstr("it waits in \"weights to the device\""));
  }
}

TEST_P(DeviceTest, WorkersThatOverflowScaleLessAndTrainOn) {
  const v1::JobConfig config = Config(
      std::string("overflow_") + GetParam(),
      {std::string("consistency.mode=") + GetParam(), "training.precision=FP16", "training.loss_scale.initial=256"});
  WholeJob job(config);
  job.StartServer(0);
  // Of another range each: a worker's scale is its own.
  job.StartWorker(0, std::make_unique<SmallRangeBackend>(64));
  job.StartWorker(1, std::make_unique<SmallRangeBackend>(16));
  const absl::Status ended = job.AwaitEnd();
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_TRUE(job.WorkerStatus(0).ok()) << job.WorkerStatus(0);
  EXPECT_TRUE(job.WorkerStatus(1).ok()) << job.WorkerStatus(1);
  for (const v1::TaskStatus& task : Workers(&job)) {
    const bool first = task.task().index() == 0;
    EXPECT_EQ(task.progress().loss_scale(), first ? 64 : 16);
    EXPECT_EQ(task.progress().overflow_total(), first ? 2 : 4);
    EXPECT_EQ(task.progress().steps_total(), 40);
    EXPECT_EQ(task.progress().non_finite_total(), 0);
  }
  EXPECT_EQ(LastLine(config, "end")["overflows"], 6);
  EXPECT_EQ(LastLine(config, "end")["non_finite"], 0);
}

TEST_P(DeviceTest, AWorkerWithSeveralGpusTrainsLikeOneThatHasOne) {
  std::vector<double> losses;
  for (const int gpus : {1, 3}) {
    const v1::JobConfig config = Config(
        absl::StrCat("gpus_", gpus, GetParam()),
        {std::string("consistency.mode=") + GetParam(), "training.micro_batches=2", "compression.push.codec=BF16"});
    WholeJob job(config);
    job.StartServer(0);
    std::vector<std::unique_ptr<Backend>> several;
    for (int gpu = 0; gpu < gpus; ++gpu) several.push_back(std::make_unique<DeferredBackend>());
    job.StartWorkerOn(0, std::move(several));
    job.StartWorker(1, std::make_unique<DeferredBackend>());
    const absl::Status ended = job.AwaitEnd();
    EXPECT_TRUE(ended.ok()) << ended;
    for (uint32_t worker : {0, 1}) EXPECT_TRUE(job.WorkerStatus(worker).ok()) << job.WorkerStatus(worker);
    for (const v1::TaskStatus& task : Workers(&job)) EXPECT_EQ(task.progress().steps_total(), 40);
    losses.push_back(LastLine(config, "progress")["loss"]);
  }
  // Which examples a worker gets, and in ASYNC the order of the pushes, differ from run to run.
  EXPECT_NEAR(losses[0], losses[1], 0.3);
}

// The weights, and the residuals of two workers, at the end of a job with this codec.
std::vector<std::string> TrainEncoded(const std::string& name, std::vector<std::string> overrides,
                                      const std::function<std::unique_ptr<Backend>()>& make_backend) {
  // Partitions write their chunks in the order in which they come to it.
  overrides.insert(overrides.end(), {"data.dispatch=STATIC", "cluster.partitions_per_server=1"});
  const v1::JobConfig config = Config(name, overrides);
  WholeJob job(config);
  job.StartServer(0);
  for (uint32_t worker : {0, 1}) job.StartWorker(worker, make_backend());
  const absl::Status ended = job.AwaitEnd();
  EXPECT_TRUE(ended.ok()) << ended;
  for (uint32_t worker : {0, 1}) EXPECT_TRUE(job.WorkerStatus(worker).ok()) << job.WorkerStatus(worker);
  std::vector<std::string> files;
  for (const char* file : {"server-0.data", "worker-0.data", "worker-1.data"}) {
    files.push_back(ReadFile(config.run_directory() + "/checkpoints/final/" + file).value_or("none"));
  }
  return files;
}

TEST(DeviceEncodingTest, AJobWhoseDevicesEncodeIsTheSameAsOneWhoseHostsDo) {
  const auto host = [] { return *CreateCpuBackend({}); };
  const auto device = [] { return std::make_unique<DeferredBackend>(); };
  for (const char* codec : {"INT8", "TOP_K", "ONE_BIT"}) {
    SCOPED_TRACE(codec);
    const std::string name = std::string("packed_") + codec;
    std::vector<std::string> overrides = {std::string("compression.push.codec=") + codec};
    const std::vector<std::string> expected = TrainEncoded(name + "_host", overrides, host);
    EXPECT_EQ(TrainEncoded(name + "_device", overrides, device), expected);
    // And one that goes on from there, with the residuals.
    overrides.push_back("training.start_from=" + testing::TempDir() + "/" + name + "_host/checkpoints/final");
    const std::vector<std::string> later = TrainEncoded(name + "_host_later", overrides, host);
    EXPECT_EQ(TrainEncoded(name + "_device_later", overrides, device), later);
    EXPECT_NE(later, expected);
    EXPECT_EQ(expected[1] == "none", codec == std::string("INT8"));
  }
}

// The mean of the losses of all steps, of which each line has those since the one before.
double MeanLoss(const v1::JobConfig& config) {
  std::istringstream lines(*ReadFile(config.run_directory() + "/metrics.jsonl"));
  double sum = 0, examples = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line).value("progress", nlohmann::json::object());
    if (!json.contains("loss")) continue;
    const double until = json["examples"];
    sum += json["loss"].get<double>() * (until - examples);
    examples = until;
  }
  return sum / examples;
}

// The mean loss of a job of two workers with so many devices each.
double MeanLossOn(const std::string& name, const std::vector<std::string>& overrides, int devices,
                  const std::function<std::unique_ptr<Backend>()>& make_backend) {
  const v1::JobConfig config = Config(name, overrides);
  WholeJob job(config);
  job.StartServer(0);
  for (uint32_t worker : {0, 1}) {
    std::vector<std::unique_ptr<Backend>> backends;
    for (int device = 0; device < devices; ++device) backends.push_back(make_backend());
    job.StartWorkerOn(worker, std::move(backends));
  }
  const absl::Status ended = job.AwaitEnd();
  EXPECT_TRUE(ended.ok()) << ended;
  for (uint32_t worker : {0, 1}) EXPECT_TRUE(job.WorkerStatus(worker).ok()) << job.WorkerStatus(worker);
  for (const v1::TaskStatus& task : Workers(&job)) EXPECT_EQ(task.progress().steps_total(), 40);
  return MeanLoss(config);
}

struct GpuCase {
  std::string name;
  std::vector<std::string> overrides;
  int gpus = 1;
  MatrixPrecision precision = MatrixPrecision::kFloat32;
  // Of the loss. Codecs round apart what is nearly the same.
  double tolerance = 1e-3;
};

class GpuJobTest : public testing::TestWithParam<GpuCase> {};

TEST_P(GpuJobTest, TrainsAsOnTheCpu) {
  const GpuCase& c = GetParam();
  for (int i = 0; i < c.gpus; ++i) {
    if (const absl::Status gpu = CheckCudaDevice(i); !gpu.ok()) GTEST_SKIP() << gpu.message();
  }
  // Which worker gets which examples is the same in every run. An emulated GPU takes its time.
  std::vector<std::string> overrides = {"data.dispatch=STATIC", "training.step_timeout_seconds=300"};
  overrides.insert(overrides.end(), c.overrides.begin(), c.overrides.end());
  const double expected = MeanLossOn("host_" + c.name, overrides, 1, [] { return *CreateCpuBackend({}); });
  int next = 0;
  const auto gpu = [&] { return *CreateCudaBackend({.device_index = next++ % c.gpus, .precision = c.precision}); };
  EXPECT_NEAR(MeanLossOn("gpu_" + c.name, overrides, c.gpus, gpu), expected, c.tolerance);
}

const GpuCase kGpuCases[] = {
    {"plain", {}},
    {"micro_batches", {"training.micro_batches=2"}},
    {"several", {}, 2},
    {"local", {"consistency.sync_every=4"}},
    {"encoded", {"compression.push.codec=INT8"}, 1, MatrixPrecision::kFloat32, 0.05},
    {"residual", {"compression.push.codec=ONE_BIT"}, 1, MatrixPrecision::kFloat32, 0.05},
    {"tf32", {"training.precision=TF32"}, 1, MatrixPrecision::kTf32, 0.05},
    {"bf16", {"training.precision=BF16"}, 1, MatrixPrecision::kBf16, 0.05},
    {"fp16", {"training.precision=FP16"}, 1, MatrixPrecision::kFp16, 0.05},
};

INSTANTIATE_TEST_SUITE_P(Gpus, GpuJobTest, testing::ValuesIn(kGpuCases),
                         [](const testing::TestParamInfo<GpuCase>& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Modes, DeviceTest, testing::Values("SYNC", "ASYNC"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

}  // namespace
}  // namespace rubato
