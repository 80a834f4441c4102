#include "bench/step/worker_loop.h"

#include <utility>

#include "bench/step/in_process_parameters.h"
#include "common/status.h"
#include "kernels/cpu/cpu_backend.h"

namespace rubato::bench {
namespace {

// A worker that does not overlap: it waits for all weights before the first layer, and pushes after the last one.
class AllAtOnce : public worker::Parameters {
 public:
  AllAtOnce(worker::Parameters* parameters, int tensors) : parameters_(parameters), tensors_(tensors) {}

  Step next_step() override { return parameters_->next_step(); }
  absl::StatusOr<bool> AwaitTensor(int tensor) override {
    for (int other = 0; tensor == 0 && other < tensors_; ++other) {
      RUBATO_ASSIGN_OR_RETURN(const bool there, parameters_->AwaitTensor(other));
      if (!there) return false;
    }
    return parameters_->AwaitTensor(tensor);
  }
  void Restart() override { parameters_->Restart(); }
  absl::StatusOr<bool> BeginStep(Step* step) override { return parameters_->BeginStep(step); }
  void PushTensor(int tensor, const Pushed& pushed) override {
    if (tensor != 0) return;  // Tensor 0 comes last.
    for (int other = tensors_ - 1; other >= 0; --other) parameters_->PushTensor(other, pushed);
  }
  absl::Status AwaitAcknowledgements() override { return parameters_->AwaitAcknowledgements(); }

 private:
  worker::Parameters* const parameters_;
  const int tensors_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerLoop>> WorkerLoop::Start(const StepSetup& setup, uint32_t index,
                                                              const v1::ServerInfo* server) {
  RUBATO_ASSIGN_OR_RETURN(StepJob job, MakeStepJob(setup, server == nullptr ? v1::ServerInfo() : *server));
  std::unique_ptr<WorkerLoop> loop(new WorkerLoop(std::move(job)));
  RUBATO_RETURN_IF_ERROR(loop->SetUp(setup, index, server != nullptr));
  return loop;
}

absl::Status WorkerLoop::SetUp(const StepSetup& setup, uint32_t index, bool has_server) {
  CpuBackendOptions backend;
  if (has_server && setup.shared_memory) {
    RUBATO_ASSIGN_OR_RETURN(arena_, SharedArena::Create("worker", size_t{16} << 20));
    backend.sending_memory = [arena = arena_](size_t bytes) {
      return std::shared_ptr<void>(arena, arena->Allocate(bytes));
    };
  }
  RUBATO_ASSIGN_OR_RETURN(backend_, CreateCpuBackend(backend));
  RUBATO_ASSIGN_OR_RETURN(model_, worker::Model::Create(job_.model, backend_.get(), {.max_batch = setup.batch}));
  RUBATO_ASSIGN_OR_RETURN(replicated_, worker::ReplicatedModel::Create({{model_.get(), backend_.get()}}));
  const int tensors = static_cast<int>(job_.model.tensors.size());
  if (has_server) {
    RUBATO_RETURN_IF_ERROR(Connect(index));
  } else {
    if (setup.copies) {
      RUBATO_ASSIGN_OR_RETURN(copies_, LoopbackCopies::Create());
    }
    parameters_ =
        std::make_unique<InProcessParameters>(job_.config, job_.model, model_.get(), backend_.get(), copies_.get());
  }
  if (has_server && !setup.overlap) parameters_ = std::make_unique<AllAtOnce>(client_.get(), tensors);
  source_ = std::make_unique<PausedSource>(setup.batch, 784, 10, index + 1, &clock_);
  worker::Trainer::Options options;
  options.config = &job_.config;
  options.spec = &job_.model;
  options.model = &*replicated_;
  options.parameters = parameters_ != nullptr ? parameters_.get() : client_.get();
  options.source = source_.get();
  options.worker = index;
  options.clock = &clock_;
  options.log = &log_;
  trainer_ = std::make_unique<worker::Trainer>(options);
  thread_ = std::thread([this] {
    if (absl::Status status = trainer_->Run(); !status.ok()) log_.Error(status.message());
  });
  return absl::OkStatus();
}

absl::Status WorkerLoop::Connect(uint32_t index) {
  RUBATO_ASSIGN_OR_RETURN(worker::ModelMemory memory, worker::ModelMemory::Create(&*replicated_));
  memory_ = std::make_unique<worker::ModelMemory>(std::move(memory));
  worker::PsClient::Options options;
  options.job = job_.description;
  options.task = StepWorker(index);
  for (const TensorSpec& tensor : job_.model.tensors) options.tensors.push_back(tensor.name);
  options.message_bytes = static_cast<int64_t>(job_.config.cluster().message_bytes());
  options.arena = arena_;
  options.clock = &clock_;
  options.log = &log_;
  options.memory = memory_.get();
  client_ = std::make_unique<worker::PsClient>(std::move(options));
  client_->Start(job_.plan);
  RUBATO_RETURN_IF_ERROR(client_->AwaitTensor(0).status());
  if (client_->uses_shared_memory() == (arena_ != nullptr)) return absl::OkStatus();
  return absl::FailedPreconditionError("tensors do not take the transport that they are to take");
}

WorkerLoop::~WorkerLoop() {
  source_->End();
  if (client_ != nullptr) client_->Cancel(absl::CancelledError("the benchmark ends"));
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<WorkerLoop::Result> WorkerLoop::Run(absl::Duration duration) {
  const int64_t steps = source_->steps();
  v1::WorkerProgress before, after;
  trainer_->Describe(&before);
  const absl::Time begin = clock_.Now();
  source_->SetPaused(false);
  clock_.Sleep(duration);
  Result result;
  result.steps = source_->steps() - steps;
  result.elapsed = clock_.Now() - begin;
  trainer_->Describe(&after);
  source_->SetPaused(true);
  result.examples = result.steps * job_.config.training().batch_size();
  result.pull_wait = absl::Seconds(after.pull_wait_seconds_total() - before.pull_wait_seconds_total());
  if (result.steps == 0) return absl::InternalError("the trainer does not make steps");
  return result;
}

}  // namespace rubato::bench
