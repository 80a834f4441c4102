// The trainer with a device whose memory the host does not reach, which does everything as late as it may.
#include "worker/ps_client/staged_parameters.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/testing/deferred_backend.h"
#include "worker/ps_client/device_encoder.h"
#include "worker/ps_client/host_encoder.h"
#include "worker/training/testing/trainer_fixture.h"

namespace rubato::worker {
namespace {

class StagedParametersTest : public TrainerTest {
 protected:
  StagedParametersTest() {
    config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
    config_.mutable_optimizer()->set_learning_rate(0.5);
  }

  void UseDevice() {
    auto device = std::make_unique<DeferredBackend>();
    device_ = device.get();
    TrainerTest::UseDevice(std::move(device));
    ASSERT_TRUE(memory_->is_staged());
  }

  // So many of them.
  void UseDevices(int count) {
    std::vector<std::unique_ptr<Backend>> peers;
    for (int i = 1; i < count; ++i) peers.push_back(std::make_unique<DeferredBackend>());
    TrainerTest::UseDevice(std::make_unique<DeferredBackend>(), std::move(peers));
    ASSERT_TRUE(memory_->is_staged());
  }

  DeferredBackend* device_ = nullptr;
};

TEST_F(StagedParametersTest, TrainsAsOnTheHost) {
  for (int micro_batches : {1, 3}) {
    config_.mutable_training()->set_micro_batches(micro_batches);
    backend_ = *CreateCpuBackend({});
    StartAfresh();
    StreamSource on_host(9, 1), on_device(9, 1);
    v1::WorkerProgress expected, progress;
    ASSERT_TRUE(Run(&on_host, &expected).ok());
    const std::vector<float> weights = Weights();
    const std::vector<int> pushed = parameters_->pushed_;

    UseDevice();
    const absl::Status status = Run(&on_device, &progress);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Weights(), weights);
    EXPECT_EQ(parameters_->pushed_, pushed);
    EXPECT_EQ(progress.loss_total(), expected.loss_total());
    EXPECT_EQ(progress.steps_total(), 9);
  }
}

TEST_F(StagedParametersTest, AMovedStepIsComputedAgain) {
  StreamSource on_host(5, 1), on_device(5, 1);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&on_host, &progress).ok());
  const std::vector<float> weights = Weights();

  UseDevice();
  parameters_->move_at_ = 2;
  ASSERT_TRUE(Run(&on_device, &progress).ok());
  EXPECT_EQ(Weights(), weights);
  EXPECT_EQ(parameters_->begun_, (std::vector<int64_t>{0, 1, 12, 13, 14}));
}

TEST_F(StagedParametersTest, SeveralDevicesTrainAsTheHostDoes) {
  for (int micro_batches : {1, 3}) {
    for (double clip_norm : {0.0, 0.05}) {
      config_.mutable_training()->set_micro_batches(micro_batches);
      config_.mutable_training()->set_clip_norm(clip_norm);
      TrainerTest::UseDevice(*CreateCpuBackend({}));
      // The last step is moved, and its batch is smaller.
      parameters_->move_at_ = 8;
      StreamSource on_host(9, 1);
      v1::WorkerProgress expected;
      ASSERT_TRUE(Run(&on_host, &expected).ok());
      const std::vector<float> weights = Weights();
      for (int devices : {2, 3, 5}) {
        SCOPED_TRACE(absl::StrCat(devices, " devices, ", micro_batches, " micro-batches, clip_norm ", clip_norm));
        UseDevices(devices);
        parameters_->move_at_ = 8;
        StreamSource on_devices(9, 1);
        v1::WorkerProgress progress;
        const absl::Status status = Run(&on_devices, &progress);
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_NEAR(progress.loss_total(), expected.loss_total(), 1e-4);
        EXPECT_EQ(progress.correct_total(), expected.correct_total());
        const std::vector<float> trained = Weights();
        for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(trained[i], weights[i], 1e-5) << i;
      }
    }
  }
}

TEST_F(StagedParametersTest, EmptyStepsArePushed) {
  UseDevice();
  FakeSource source(3);
  source.empty_ = true;
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&source, &progress).ok());
  EXPECT_EQ(parameters_->empty_, 6);
}

TEST_F(StagedParametersTest, LocalStepsMoveAsOnTheHost) {
  UseLocalSgd(4);
  StreamSource on_host(3, 4), on_device(3, 4);
  v1::WorkerProgress progress;
  ASSERT_TRUE(Run(&on_host, &progress).ok());
  const std::vector<float> weights = Weights();

  UseDevice();
  UseLocalSgd(4);
  ASSERT_TRUE(Run(&on_device, &progress).ok());
  EXPECT_EQ(Weights(), weights);
}

// Also with the error-feedback residual of before, and as it is in the end, after steps that were not encoded.
TEST_F(StagedParametersTest, TheDeviceEncodesToTheSameBytesAsTheHost) {
  v1::JobDescription job;
  for (uint32_t tensor = 0; tensor < 2; ++tensor) {
    // The weights and the bias of the layer, the weights in two parts.
    for (uint32_t part = 0; part < 2 - tensor; ++part) {
      v1::ChunkPlacement* chunk = job.add_chunks();
      chunk->set_tensor(tensor);
      chunk->set_offset(3 * part);
      chunk->set_length(tensor == 1 ? 2 : part == 0 ? 3 : 1);
    }
  }
  const std::vector<float> kept = {0.25f, -0.5f, 0.125f};
  for (v1::Codec codec : AllCodecs()) {
    if (codec == v1::NONE) continue;
    SCOPED_TRACE(v1::Codec_Name(codec));
    const std::vector<CodecSpec> codecs = {{codec, 0.5}, {v1::NONE}};
    TrainerTest::UseDevice(*CreateCpuBackend({}));
    HostEncoder host(job, {.codecs = codecs, .seed = 7, .worker = 1});
    if (HasResidual(codec)) *host.residual(0) = kept;
    parameters_->UseEncoder(&job, &host);
    parameters_->uncompressed_ = {3, 4};
    StreamSource on_host(9, 1), on_device(9, 1);
    v1::WorkerProgress progress;
    ASSERT_TRUE(Run(&on_host, &progress).ok());
    const std::vector<float> weights = Weights();

    UseDevice();
    device_encoder_ = *DeviceEncoder::Create(
        job, {.model = model_.get(), .backend = backend_.get(), .codecs = codecs, .seed = 7, .worker = 1});
    if (HasResidual(codec)) *device_encoder_->residual(0) = kept;
    ASSERT_TRUE(device_encoder_->UseResiduals().ok());
    parameters_->UseEncoder(&job, device_encoder_.get());
    parameters_->uncompressed_ = {3, 4};
    staged_ = std::make_unique<StagedParameters>(parameters_.get(), &*memory_, device_encoder_.get(), backend_.get(),
                                                 watchdog_.get());
    const absl::Status status = Run(&on_device, &progress);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(Weights(), weights);
    ASSERT_TRUE(device_encoder_->FetchResiduals().ok());
    for (uint32_t chunk = 0; chunk < 3; ++chunk) EXPECT_EQ(*device_encoder_->residual(chunk), *host.residual(chunk));
  }
}

TEST_F(StagedParametersTest, AFailingDeviceEndsTheTrainingWithItsError) {
  UseDevice();
  device_->FailWith(absl::InternalError("the device is gone"));
  StreamSource source(3, 1);
  v1::WorkerProgress progress;
  const absl::Status status = Run(&source, &progress);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "the device is gone");
}

// Without the trainer: a device that fails between the last gradient and its push.
TEST_F(StagedParametersTest, AnErrorOfAPushIsReturnedByTheNextCallThatCan) {
  UseDevice();
  staged_->PushTensor(1, {.examples = 8});
  device_->FailWith(absl::InternalError("the device is gone"));
  staged_->next_step();
  EXPECT_TRUE(parameters_->pushed_.empty());
  EXPECT_EQ(staged_->AwaitTensor(0).status().message(), "the device is gone");
  EXPECT_EQ(staged_->AwaitAcknowledgements().message(), "the device is gone");
}

}  // namespace
}  // namespace rubato::worker
