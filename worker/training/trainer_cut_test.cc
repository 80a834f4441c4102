// The trainer and cuts: what it captures, and that a worker which goes on from there pushes the same bytes.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/storage/file.h"
#include "kernels/testing/deferred_backend.h"
#include "kernels/testing/small_range_backend.h"
#include "worker/ps_client/cut_writer.h"
#include "worker/ps_client/device_encoder.h"
#include "worker/ps_client/host_encoder.h"
#include "worker/ps_client/worker_part.h"
#include "worker/training/carried_state.h"
#include "worker/training/testing/trainer_fixture.h"

namespace rubato::worker {
namespace {

constexpr int kSteps = 9;
constexpr int kCutAt = 4;

class TrainerCutTest : public TrainerTest {
 protected:
  TrainerCutTest() {
    // With a dropout layer, whose masks are drawn.
    v1::ModelConfig* model = config_.mutable_model();
    model->clear_layers();
    model->add_layers()->mutable_dropout()->set_rate(0.3);
    model->add_layers()->mutable_linear()->set_units(2);
    for (int i : {0, 1}) model->mutable_layers(i)->set_name(i == 0 ? "drop" : "only");
    spec_ = *BuildModelSpec(*model);
    config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
    config_.mutable_optimizer()->set_learning_rate(0.5);
    config_.mutable_training()->mutable_loss_scale()->set_initial(64);
    config_.mutable_training()->mutable_loss_scale()->set_growth_steps(3);
    for (uint32_t tensor = 0; tensor < 2; ++tensor) {
      // The weights and the bias of the layer, the weights in two parts.
      for (uint32_t part = 0; part < 2 - tensor; ++part) {
        v1::ChunkPlacement* chunk = job_.add_chunks();
        chunk->set_tensor(tensor);
        chunk->set_offset(3 * part);
        chunk->set_length(tensor == 1 ? 2 : part == 0 ? 3 : 1);
      }
    }
    directory_ = JoinPath(testing::TempDir(), std::string("trainer_cut_test_") +
                                                  testing::UnitTest::GetInstance()->current_test_info()->name());
  }

  // A worker that has just been started.
  void StartWorker() {
    UseDevice(make_backend_());
    host_encoder_.reset();
    if (memory_->is_staged()) {
      device_encoder_ = *DeviceEncoder::Create(
          job_, {.model = model_.get(), .backend = backend_.get(), .codecs = codecs_, .seed = 7, .worker = 0});
      ASSERT_TRUE(device_encoder_->UseResiduals().ok());
      staged_ = std::make_unique<StagedParameters>(parameters_.get(), &*memory_, device_encoder_.get(), backend_.get(),
                                                   watchdog_.get());
    } else {
      host_encoder_ = std::make_unique<HostEncoder>(job_, HostEncoder::Options{.codecs = codecs_, .seed = 7});
    }
    parameters_->UseEncoder(&job_, encoder());
    if (batches_ > 1) UseLocalSgd(batches_);
  }

  GradientEncoder* encoder() {
    return host_encoder_ == nullptr ? static_cast<GradientEncoder*>(device_encoder_.get()) : host_encoder_.get();
  }

  CarriedState Carried() {
    return CarriedState({.job = &job_,
                         .spec = &spec_,
                         .encoder = encoder(),
                         .device_encoder = device_encoder_.get(),
                         .local = local_.get(),
                         .scaler = scaler_,
                         .backend = backend_.get()});
  }

  // The bytes that are pushed from step `first` on.
  std::string Train(int first) {
    StreamSource source(kSteps, batches_, StreamSource::Ahead::kNothing, first);
    v1::WorkerProgress progress;
    const absl::Status status = Run(&source, &progress);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(progress.steps_total(), kSteps - first);
    return parameters_->pushed_bytes_;
  }

  // Until its part is on the disk.
  void Write(const v1::Plan& plan, WorkerPart part) {
    RealClock clock;
    CutWriter writer(
        {.directory = directory_, .job_name = "job", .servers = 1, .task = task_, .clock = &clock, .log = &log_});
    writer.Take(plan, {}, std::move(part));
    const absl::Time deadline = clock.Now() + absl::Seconds(30);
    while (!writer.progress().written()) {
      ASSERT_LT(clock.Now(), deadline) << writer.progress().problem();
      clock.Sleep(absl::Milliseconds(1));
    }
  }

  // Trains without a stop and with a cut on the way, starts another worker, and has it go on from the cut.
  void ExpectTheSameBytesAfterTheCut() {
    task_.set_role(v1::TaskId::WORKER);
    restored_.Clear();
    StartWorker();
    take_cut_ = nullptr;
    const std::string undisturbed = Train(0);

    StartWorker();
    std::vector<std::vector<float>> weights;
    size_t pushed = 0;
    int cuts = 0;
    parameters_->cut_at_ = kCutAt;
    take_cut_ = [&](const v1::Plan& plan) {
      ++cuts;
      absl::StatusOr<WorkerPart> part = Carried().Copy();
      EXPECT_TRUE(part.ok()) << part.status();
      weights = parameters_->at_server();
      pushed = parameters_->pushed_bytes_.size();
      Write(plan, *std::move(part));
      return absl::OkStatus();
    };
    EXPECT_EQ(Train(0), undisturbed);
    EXPECT_EQ(cuts, 1);
    ASSERT_GT(pushed, 0u);
    ASSERT_LT(pushed, undisturbed.size());

    StartWorker();
    take_cut_ = nullptr;
    v1::Cut cut;
    cut.set_id(7);
    WorkerPart part = Carried().Room();
    const absl::StatusOr<bool> read =
        ReadWorkerPart(JoinPath(directory_, absl::StrCat("step", kCutAt)), 0, &cut, &part);
    ASSERT_TRUE(read.ok()) << read.status();
    if (*read) {
      ASSERT_TRUE(Carried().Put(part).ok());
    }
    restored_ = part.state;
    parameters_->Resume(weights, kCutAt);
    EXPECT_EQ(Train(kCutAt), undisturbed.substr(pushed));
    if (part.empty()) return;

    // Which it would not without it.
    StartWorker();
    restored_.Clear();
    parameters_->Resume(weights, kCutAt);
    EXPECT_NE(Train(kCutAt), undisturbed.substr(pushed));
    restored_ = part.state;
  }

  const std::vector<std::function<std::unique_ptr<Backend>()>> kHostAndDevice = {
      [] { return *CreateCpuBackend({}); }, [] { return std::make_unique<DeferredBackend>(); }};
  std::function<std::unique_ptr<Backend>()> make_backend_ = kHostAndDevice[0];
  std::vector<CodecSpec> codecs_ = {{v1::NONE}, {v1::NONE}};
  int batches_ = 1;
  v1::TaskId task_;
  v1::JobDescription job_;
  std::unique_ptr<HostEncoder> host_encoder_;
  std::string directory_;
};

TEST_F(TrainerCutTest, GoesOnWithItsResiduals) {
  for (v1::Codec codec : AllCodecs()) {
    for (const auto& make_backend : kHostAndDevice) {
      SCOPED_TRACE(v1::Codec_Name(codec));
      make_backend_ = make_backend;
      codecs_ = {{codec, 0.5}, {codec, 0.5}};
      ExpectTheSameBytesAfterTheCut();
    }
  }
}

TEST_F(TrainerCutTest, GoesOnWithTheStateOfItsLocalOptimizer) {
  batches_ = 3;
  config_.mutable_optimizer()->set_momentum(0.9);
  config_.mutable_optimizer()->set_epsilon(1e-8);
  config_.mutable_optimizer()->set_beta1(0.9);
  config_.mutable_optimizer()->set_beta2(0.999);
  config_.mutable_optimizer()->set_initial_accumulator(0.1);
  for (auto algorithm : {v1::OptimizerConfig::SGD, v1::OptimizerConfig::MOMENTUM, v1::OptimizerConfig::ADAGRAD,
                         v1::OptimizerConfig::ADAM}) {
    for (const auto& make_backend : kHostAndDevice) {
      for (v1::Codec codec : {v1::NONE, v1::TOP_K}) {
        SCOPED_TRACE(absl::StrCat(v1::OptimizerConfig::Algorithm_Name(algorithm), " ", v1::Codec_Name(codec)));
        config_.mutable_optimizer()->set_algorithm(algorithm);
        make_backend_ = make_backend;
        codecs_ = {{codec, 0.5}, {v1::NONE}};
        ExpectTheSameBytesAfterTheCut();
      }
    }
  }
}

// It overflows and grows before the cut and after it.
TEST_F(TrainerCutTest, GoesOnWithItsLossScale) {
  scales_loss_ = true;
  make_backend_ = [] { return std::make_unique<SmallRangeBackend>(16); };
  for (v1::Codec codec : {v1::NONE, v1::TOP_K}) {
    codecs_ = {{codec, 0.5}, {codec, 0.5}};
    ExpectTheSameBytesAfterTheCut();
    EXPECT_EQ(restored_.loss_scale(), 16);
    EXPECT_EQ(restored_.loss_scale_steps(), 2);
  }
}

// A plan without a cut, and the steps after the first one.
TEST_F(TrainerCutTest, OnlyTheFirstStepOfAPlanWithACutIsOne) {
  int cuts = 0;
  take_cut_ = [&](const v1::Plan& plan) {
    EXPECT_EQ(plan.cut().id(), 7u);
    EXPECT_EQ(parameters_->begun_.back(), 2);
    EXPECT_EQ(parameters_->pushed_.size(), 4u);
    ++cuts;
    return absl::OkStatus();
  };
  StartWorker();
  parameters_->cut_at_ = 2;
  FakeSource empty(5);
  empty.empty_ = true;
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&empty, &progress).ok());
  EXPECT_EQ(cuts, 1);
}

TEST_F(TrainerCutTest, ADeviceThatFailsThenEndsTheTraining) {
  StartWorker();
  parameters_->cut_at_ = 2;
  take_cut_ = [](const v1::Plan&) { return absl::InternalError("the device is gone"); };
  FakeSource source(5);
  v1::WorkerProgress progress;
  EXPECT_EQ(Run(&source, &progress).message(), "the device is gone");
  EXPECT_EQ(progress.steps_total(), 2);
}

}  // namespace
}  // namespace rubato::worker
