#include "bench/push_pull/rubato_steps.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/job_server.h"
#include "bench/push_pull/client_memory.h"
#include "common/clock.h"
#include "common/float_buffer.h"
#include "common/log.h"
#include "common/shared_memory/arena.h"
#include "common/status.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::bench {
namespace {

class StepsClient : public Client, private worker::PsClient::TensorMemory {
 public:
  // `arena` is shared with the server and holds `gradients`. Both null: they are sent.
  StepsClient(const Setup& setup, RubatoJob job, std::shared_ptr<SharedArena> arena, FloatBuffer::Ptr gradients)
      : setup_(setup),
        arena_(std::move(arena)),
        memory_(setup, {.sign = -1, .gradients = std::move(gradients)}),
        job_(std::move(job)) {}

  // Pulls the first step's weights. FailedPrecondition: tensors do not take the transport that they are to take.
  absl::Status Start() {
    worker::PsClient::Options options;
    options.job = job_.description;
    options.task = RubatoWorker();
    options.tensors = job_.TensorNames();
    options.message_bytes = static_cast<int64_t>(job_.config.cluster().message_bytes());
    options.connections_per_server = static_cast<int>(job_.config.cluster().connections_per_server());
    options.arena = arena_;
    RUBATO_ASSIGN_OR_RETURN(options.security, OpenSecurity(job_.config, Party::kWorker));
    options.wait_timeout = absl::Seconds(60);
    options.clock = &clock_;
    options.log = &log_;
    options.memory = this;
    client_ = std::make_unique<worker::PsClient>(std::move(options));
    client_->Start(job_.plan);
    RUBATO_RETURN_IF_ERROR(AwaitAll());
    if (client_->uses_shared_memory() == (arena_ != nullptr)) return absl::OkStatus();
    return absl::FailedPreconditionError(arena_ != nullptr ? "client and server share no memory"
                                                           : "client and server share memory");
  }

  absl::StatusOr<Count> Run(absl::Duration duration) override {
    const absl::Time begin = clock_.Now();
    int64_t steps = 0;
    for (; clock_.Now() - begin < duration; ++steps) {
      worker::Parameters::Step step;
      RUBATO_ASSIGN_OR_RETURN(const bool begun, client_->BeginStep(&step));
      if (!begun) return absl::InternalError("the plan has changed");
      for (int64_t chunk = setup_.chunks() - 1; chunk >= 0; --chunk) {
        memory_.CountTrip(chunk);
        client_->PushTensor(static_cast<int>(chunk), {.examples = 1});
      }
      RUBATO_RETURN_IF_ERROR(AwaitAll());
    }
    return Count{steps * setup_.chunks(), clock_.Now() - begin};
  }

  absl::Status Verify() override { return memory_.Verify(); }

 private:
  absl::Status AwaitAll() {
    for (int64_t chunk = 0; chunk < setup_.chunks(); ++chunk) {
      RUBATO_ASSIGN_OR_RETURN(const bool there, client_->AwaitTensor(static_cast<int>(chunk)));
      if (!there) return absl::InternalError("the plan has changed");
    }
    return absl::OkStatus();
  }

  float* Weights(int tensor, int64_t offset) override { return memory_.Weights(tensor) + offset; }
  float* Gradient(int tensor, int64_t offset) override { return memory_.Gradient(tensor) + offset; }

  const Setup setup_;
  const std::shared_ptr<SharedArena> arena_;
  ClientMemory memory_;
  const RubatoJob job_;
  RealClock clock_;
  Logger log_{"worker 0", &clock_};
  std::unique_ptr<worker::PsClient> client_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> ConnectRubatoSteps(const Setup& setup, RubatoJob job) {
  std::shared_ptr<SharedArena> arena;
  FloatBuffer::Ptr gradients;
  if (job.config.cluster().shared_memory() != v1::ClusterConfig::OFF) {
    const int64_t bytes = setup.chunks() * setup.size;
    RUBATO_ASSIGN_OR_RETURN(arena, SharedArena::Create("worker 0", bytes));
    void* part = arena->Allocate(bytes);
    if (part == nullptr) return absl::ResourceExhaustedError(absl::StrCat("no ", bytes, " bytes in the arena"));
    gradients = FloatBuffer::Wrap(static_cast<float*>(part), bytes / sizeof(float), arena);
  }
  auto client = std::make_unique<StepsClient>(setup, std::move(job), std::move(arena), std::move(gradients));
  RUBATO_RETURN_IF_ERROR(client->Start());
  return client;
}

}  // namespace rubato::bench
