#include "server/server_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"
#include "common/storage/safetensors_file.h"
#include "common/task.h"
#include "common/wire/exchange_codec.h"
#include "server/gather.h"
#include "server/request_reader.h"

namespace rubato::server {
absl::StatusOr<std::unique_ptr<ServerCore>> ServerCore::Create(Options options) {
  RUBATO_ASSIGN_OR_RETURN(ModelSpec model, BuildModelSpec(options.config.model()));
  return std::unique_ptr<ServerCore>(new ServerCore(std::move(options), std::move(model)));
}

ServerCore::ServerCore(Options options, ModelSpec model) : options_(std::move(options)), model_(std::move(model)) {}

ServerCore::~ServerCore() {
  std::vector<std::unique_ptr<PartitionOwner>> partitions;
  {
    MutexLock lock(mu_);
    partitions.swap(partitions_);
  }
  partitions.clear();  // Joins their threads, whose last callbacks may take the lock.
}

absl::Status ServerCore::StartJob(const v1::JobDescription& job) {
  MutexLock lock(mu_);
  if (job_ != nullptr) {
    if (job_->fingerprint() == job.fingerprint()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("this server is in job ", absl::Hex(job_->fingerprint()),
                                                      "; the coordinator speaks of job ",
                                                      absl::Hex(job.fingerprint())));
  }
  RUBATO_ASSIGN_OR_RETURN(const std::vector<std::vector<uint32_t>> chunks, ChunksByPartition(job));
  if (const std::string& from = options_.config.training().start_from(); IsSafetensorsPath(from)) {
    // All tensors at once, and not those alone that this server has.
    absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(from);
    RUBATO_RETURN_IF_ERROR(Annotate(file.ok() ? file->CheckFits(model_) : file.status(), "training.start_from"));
  }
  auto kept_job = std::make_unique<const v1::JobDescription>(job);
  std::vector<std::unique_ptr<PartitionOwner>> owners;
  for (uint32_t partition = 0; partition < chunks.size(); ++partition) {
    RUBATO_ASSIGN_OR_RETURN(PartitionOwner::Options owner, OwnerOptions(kept_job.get(), partition, chunks[partition]));
    owners.push_back(std::make_unique<PartitionOwner>(std::move(owner)));
    if (const std::string& from = options_.config.training().start_from(); !from.empty()) {
      RUBATO_RETURN_IF_ERROR(Annotate(owners.back()->Restore(from), "training.start_from"));
    }
  }
  job_ = std::move(kept_job);
  partitions_ = std::move(owners);
  PartitionProgress nothing_yet;
  nothing_yet.counts.set_highest_started_step(-1);
  progress_.assign(chunks.size(), nothing_yet);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<uint32_t>>> ServerCore::ChunksByPartition(const v1::JobDescription& job) const {
  const uint32_t partitions = options_.config.cluster().partitions_per_server();
  std::vector<std::vector<uint32_t>> chunks(partitions);
  for (int index = 0; index < job.chunks_size(); ++index) {
    const v1::ChunkPlacement& placement = job.chunks(index);
    if (placement.tensor() >= model_.tensors.size() || placement.partition() >= partitions) {
      return absl::FailedPreconditionError(absl::StrCat(
          "chunk ", index, " is of tensor ", placement.tensor(), " in partition ", placement.partition(),
          "; this server's config has ", model_.tensors.size(), " tensors and ", partitions, " partitions"));
    }
    if (placement.server() == options_.task.index()) chunks[placement.partition()].push_back(index);
  }
  return chunks;
}

absl::StatusOr<PartitionOwner::Options> ServerCore::OwnerOptions(const v1::JobDescription* job, uint32_t partition,
                                                                 const std::vector<uint32_t>& chunks) const {
  PartitionOwner::Options owner;
  owner.partition = partition;
  owner.config = &options_.config;
  owner.model = &model_;
  owner.job = job;
  owner.chunks = chunks;
  owner.clock = options_.clock;
  owner.logger = options_.log;
  owner.arena = options_.arena;
  owner.trace = options_.trace;
  owner.session_lives = [shared = options_.shared](uint64_t session, const v1::TaskId& task) {
    return shared != nullptr && shared->Find(session, task) != nullptr;
  };
  if (!options_.config.cluster().update_log()) return owner;
  v1::LogHeader header;
  header.set_job_name(options_.config.name());
  header.set_server(options_.task.index());
  header.set_partition(partition);
  header.set_server_incarnation(options_.task.incarnation());
  const std::string path = JoinPath(options_.config.run_directory(), UpdateLogName(options_.task.index(), partition));
  RUBATO_ASSIGN_OR_RETURN(owner.log, UpdateLogWriter::Create(path, header));
  return owner;
}

std::vector<PartitionOwner*> ServerCore::Partitions() {
  MutexLock lock(mu_);
  std::vector<PartitionOwner*> partitions;
  for (const auto& partition : partitions_) partitions.push_back(partition.get());
  return partitions;
}

void ServerCore::OnDirective(const v1::Directive& directive) {
  const std::vector<PartitionOwner*> partitions = Partitions();
  if (partitions.empty()) return;
  switch (directive.body_case()) {
    case v1::Directive::kAnnounce:
      return Announce(partitions, directive.announce().generation());
    case v1::Directive::kCommit:
      return Commit(partitions, directive.commit().plan());
    case v1::Directive::kAbort:
      for (PartitionOwner* partition : partitions) partition->Abort(directive.abort().generation());
      return;
    case v1::Directive::kCheckpoint:
      return WriteCheckpoint(partitions, directive.checkpoint().name());
    // Of the task, or of others.
    case v1::Directive::kRegistered:
    case v1::Directive::kJob:
    case v1::Directive::kShardGrant:
    case v1::Directive::kEvaluate:
    case v1::Directive::kStop:
    case v1::Directive::kClock:
    case v1::Directive::kRecordTrace:
    case v1::Directive::BODY_NOT_SET:
      return;
  }
}

void ServerCore::Announce(const std::vector<PartitionOwner*>& partitions, uint64_t generation) {
  auto gather = std::make_shared<Gather<int64_t>>(partitions.size(), [this, generation](std::vector<int64_t> begun) {
    v1::TaskMessage message;
    message.mutable_announce_ack()->set_generation(generation);
    message.mutable_announce_ack()->set_highest_started_step(*std::max_element(begun.begin(), begun.end()));
    options_.report(std::move(message));
  });
  for (PartitionOwner* partition : partitions) {
    partition->Announce(generation, [gather](int64_t highest) { gather->Add(highest); });
  }
}

void ServerCore::Commit(const std::vector<PartitionOwner*>& partitions, const v1::Plan& plan) {
  {
    MutexLock lock(mu_);
    plan_ = plan;
  }
  auto gather = std::make_shared<Gather<int>>(
      partitions.size(), [this, generation = plan.generation(), amendment = plan.amendment()](std::vector<int>) {
        v1::TaskMessage message;
        message.mutable_plan_ack()->set_generation(generation);
        message.mutable_plan_ack()->set_amendment(amendment);
        options_.report(std::move(message));
      });
  for (PartitionOwner* partition : partitions) partition->Commit(plan, [gather] { gather->Add(0); });
}

void ServerCore::WriteCheckpoint(const std::vector<PartitionOwner*>& partitions, const std::string& name) {
  v1::Plan plan;
  {
    MutexLock lock(mu_);
    plan = plan_;
  }
  auto gather = std::make_shared<Gather<std::vector<ChunkSnapshot>>>(
      partitions.size(), [this, name, plan](std::vector<std::vector<ChunkSnapshot>> parts) {
        std::vector<ChunkSnapshot> chunks;
        for (std::vector<ChunkSnapshot>& part : parts) {
          std::move(part.begin(), part.end(), std::back_inserter(chunks));
        }
        absl::Status status = WriteChunks(name, chunks, plan);
        if (!status.ok()) options_.log->Error(absl::StrCat("checkpoint ", name, ": ", status.message()));
        v1::TaskMessage message;
        message.mutable_checkpoint_done()->set_name(name);
        message.mutable_checkpoint_done()->set_error(std::string(status.message()));
        options_.report(std::move(message));
      });
  for (PartitionOwner* partition : partitions) {
    partition->Snapshot([gather](std::vector<ChunkSnapshot> chunks) { gather->Add(std::move(chunks)); });
  }
}

absl::Status ServerCore::WriteChunks(const std::string& name, const std::vector<ChunkSnapshot>& chunks,
                                     const v1::Plan& plan) {
  const std::string directory = JoinPath(JoinPath(options_.config.run_directory(), "checkpoints"), name);
  RUBATO_ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(directory, options_.task));
  for (const ChunkSnapshot& chunk : chunks) {
    CheckpointChunk entry;
    entry.record = chunk.record;
    entry.values = chunk.weights->data();
    for (const FloatBuffer::Ptr& slot : chunk.slots) entry.slots.push_back(slot->data());
    RUBATO_RETURN_IF_ERROR(writer->Add(entry));
  }
  v1::CheckpointManifest manifest;
  manifest.set_job_name(options_.config.name());
  manifest.set_servers(options_.config.cluster().servers());
  *manifest.mutable_plan() = plan;
  return writer->Finish(std::move(manifest));
}

void ServerCore::OnMessage(std::shared_ptr<Connection> connection, const grpc::ByteBuffer& message) {
  PartitionOwner* owner = nullptr;
  PartitionOwner::Incoming incoming;
  if (options_.trace != nullptr && options_.trace->enabled()) incoming.arrived = options_.clock->Now();
  absl::StatusOr<DecodedRequest> decoded = DecodeRequest(message);
  absl::Status status = decoded.ok() ? Route(*decoded, &owner, &incoming) : decoded.status();
  if (status.ok()) {
    if (options_.on_step) options_.on_step(incoming.request.step);
    incoming.connection = std::move(connection);
    return owner->Submit(std::move(incoming));
  }
  v1::ExchangeReply refusal;
  if (decoded.ok()) refusal.set_request_id(decoded->header.request_id());
  refusal.set_outcome(v1::ExchangeReply::REFUSED);
  refusal.set_message(std::string(status.message()));
  connection->Send(EncodeReply(refusal, {}), 0);
}

absl::Status ServerCore::Route(const DecodedRequest& message, PartitionOwner** owner,
                               PartitionOwner::Incoming* incoming) {
  const v1::ExchangeRequest& header = message.header;
  const v1::JobDescription* job = nullptr;
  {
    MutexLock lock(mu_);
    job = job_.get();  // Stays as it is once it is there.
    if (job != nullptr && header.partition() < partitions_.size()) *owner = partitions_[header.partition()].get();
  }
  if (job == nullptr) return absl::FailedPreconditionError("this server is not in a job yet");
  std::shared_ptr<const SharedRegion> region;
  if (header.shared_session() != 0 && options_.shared != nullptr) {
    region = options_.shared->Find(header.shared_session(), header.task());
  }
  RUBATO_ASSIGN_OR_RETURN(ReceivedRequest received,
                          ReadRequest(message, std::move(region), *job, options_.task.index()));
  // ReadRequest accepts no chunk of another partition, and a request without chunks has no partition.
  if (*owner == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("partition: ", header.partition(), "; this server has ",
                                                   options_.config.cluster().partitions_per_server()));
  }
  incoming->request_id = header.request_id();
  incoming->request = std::move(received.request);
  incoming->gradient_bytes = received.gradient_bytes;
  incoming->in_shared_memory = received.in_shared_memory;
  incoming->shared_session = header.shared_session();
  return absl::OkStatus();
}

void ServerCore::OnClosed(uint64_t connection_id) {
  for (PartitionOwner* partition : Partitions()) partition->OnClosed(connection_id);
}

v1::ServerProgress ServerCore::Progress() {
  std::vector<PartitionOwner*> partitions = Partitions();
  for (size_t i = 0; i < partitions.size(); ++i) {
    partitions[i]->Describe([this, i](PartitionProgress progress) {
      MutexLock lock(mu_);
      progress_[i] = std::move(progress);
    });
  }
  MutexLock lock(mu_);
  v1::ServerProgress total = SumProgress(progress_);
  options_.log->SetPosition(plan_.generation(), total.highest_started_step());
  return total;
}

v1::Plan ServerCore::plan() {
  MutexLock lock(mu_);
  return plan_;
}

}  // namespace rubato::server
