#include "server/server_core.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/config/checkpoint_directory.h"
#include "common/limits/peer_name.h"
#include "common/security/sender.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/checkpoint_restorer.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"
#include "common/storage/safetensors_file.h"
#include "common/task.h"
#include "common/wire/exchange_codec.h"
#include "server/gather.h"
#include "server/request_reader.h"

namespace rubato::server {
namespace {

constexpr char kCannotRestorePayload[] = "rubato/cannot_restore";

}  // namespace

bool CannotRestore(const absl::Status& status) { return status.GetPayload(kCannotRestorePayload).has_value(); }

absl::StatusOr<std::unique_ptr<ServerCore>> ServerCore::Create(Options options) {
  RUBATO_ASSIGN_OR_RETURN(ModelSpec model, BuildModelSpec(options.config.model()));
  return std::unique_ptr<ServerCore>(new ServerCore(std::move(options), std::move(model)));
}

ServerCore::ServerCore(Options options, ModelSpec model) : options_(std::move(options)), model_(std::move(model)) {
  if (options_.arena != nullptr && !model_.tables.empty())
    blocks_ = SharedBlocks::Create(options_.arena, kRowRoomBytes);
}

ServerCore::~ServerCore() {
  Partitions partitions;
  std::unique_ptr<PartWriter> writer;
  {
    MutexLock lock(mu_);
    partitions.swap(partitions_);
  }
  partitions.clear();  // Joins their threads, whose last callbacks may take the lock and use the writer.
  {
    MutexLock lock(mu_);
    writer.swap(writer_);
  }
}

absl::StatusOr<bool> ServerCore::IsStarted(const v1::JobDescription& job) {
  MutexLock lock(mu_);
  if (job_ == nullptr) return false;
  if (job_->fingerprint() == job.fingerprint()) return true;
  return absl::FailedPreconditionError(absl::StrCat("this server is in job ", absl::Hex(job_->fingerprint()),
                                                    "; the coordinator speaks of job ", absl::Hex(job.fingerprint())));
}

absl::Status ServerCore::StartJob(const v1::JobDescription& job) {
  RUBATO_ASSIGN_OR_RETURN(const bool started, IsStarted(job));
  if (started) {
    NameAssigner(job);
    return absl::OkStatus();
  }
  auto kept_job = std::make_unique<const v1::JobDescription>(job);
  RUBATO_ASSIGN_OR_RETURN(Partitions partitions, MakePartitions(kept_job.get()));
  std::shared_ptr<const PartPeers> peers =
      MakePartPeers(options_.config, job, options_.task, options_.security, options_.clock, options_.log);
  RUBATO_RETURN_IF_ERROR(Restore(job, partitions, peers.get()));
  for (const auto& partition : partitions) {
    if (job.has_initial_weights_from()) partition->NameAssigner(job.initial_weights_from());
  }
  std::unique_ptr<PartWriter> writer = MakeWriter();
  MutexLock lock(mu_);
  files_ = MakeFiles(job);
  peers_ = std::move(peers);
  job_ = std::move(kept_job);
  writer_ = std::move(writer);
  PartitionProgress nothing_yet;
  nothing_yet.counts.set_highest_started_step(-1);
  progress_.assign(partitions.size(), nothing_yet);
  partitions_ = std::move(partitions);
  return absl::OkStatus();
}

bool ServerCore::AwaitsWeights(const v1::JobDescription& job) const {
  const v1::JobConfig& config = options_.config;
  return config.model().has_manifest() && config.training().start_from().empty() && !job.has_restore();
}

void ServerCore::NameAssigner(const v1::JobDescription& job) {
  if (!job.has_initial_weights_from()) return;
  for (PartitionOwner* partition : AllPartitions()) partition->NameAssigner(job.initial_weights_from());
}

absl::StatusOr<ServerCore::Partitions> ServerCore::MakePartitions(const v1::JobDescription* job) {
  RUBATO_ASSIGN_OR_RETURN(const std::vector<std::vector<uint32_t>> chunks, ChunksByPartition(*job));
  Partitions partitions;
  for (uint32_t partition = 0; partition < chunks.size(); ++partition) {
    RUBATO_ASSIGN_OR_RETURN(PartitionOwner::Options owner, OwnerOptions(job, partition, chunks[partition]));
    partitions.push_back(std::make_unique<PartitionOwner>(std::move(owner)));
  }
  return partitions;
}

absl::Status ServerCore::Restore(const v1::JobDescription& job, const Partitions& partitions,
                                 const PartPeers* peers) const {
  const std::string& from = options_.config.training().start_from();
  const bool has_chunks =
      std::any_of(partitions.begin(), partitions.end(), [](const auto& partition) { return partition->has_chunks(); });
  // A server without chunks came late: what the others went on from may be gone.
  if (!has_chunks || (!job.has_restore() && from.empty())) return absl::OkStatus();
  CheckpointRestorer restorer;
  std::vector<size_t> first;
  for (const auto& partition : partitions) first.push_back(partition->BeginRestore(&restorer));
  if (job.has_restore()) {
    RUBATO_RETURN_IF_ERROR(RestoreCut(job, &restorer, peers));
  } else if (IsSafetensorsPath(from)) {
    // All tensors at once, and not those alone that this server has.
    absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(from);
    RUBATO_RETURN_IF_ERROR(Annotate(file.ok() ? file->CheckFits(model_) : file.status(), "training.start_from"));
    RUBATO_RETURN_IF_ERROR(Annotate(restorer.ReadSafetensors(from), "training.start_from"));
  } else {
    RUBATO_RETURN_IF_ERROR(Annotate(restorer.ReadServers(from), "training.start_from"));
  }
  for (size_t i = 0; i < partitions.size(); ++i) {
    partitions[i]->FinishRestore(restorer, first[i], /*versions=*/job.has_restore());
  }
  return absl::OkStatus();
}

absl::Status ServerCore::RestoreCut(const v1::JobDescription& job, CheckpointRestorer* restorer,
                                    const PartPeers* peers) const {
  const v1::Cut& cut = job.restore();
  if (!IsCheckpointName(cut.name())) {
    return absl::InvalidArgumentError(
        absl::StrCat("restore.name: '", cut.name(), "'; allowed: step<number>, final, stopped"));
  }
  const std::string directory = JoinPath(CheckpointDirectory(options_.config), cut.name());
  absl::Status status = restorer->ReadServers(directory, cut.id(), /*is_complete=*/true);
  if (!status.ok() && peers != nullptr) {
    options_.log->Info(
        absl::StrCat("asks other servers for parts of checkpoint ", cut.name(), ", as ", status.message()));
    for (uint32_t server : job.restore_servers()) {
      // A damaged part is as good as none.
      if (ReadCheckpointPart(directory, v1::TaskId::SERVER, server, cut.id()).ok()) continue;
      const auto lacks = [restorer](const v1::CheckpointManifest& manifest) { return restorer->Lacks(manifest); };
      const absl::Status fetched =
          peers->Fetch(cut.name(), cut.id(), v1::TaskId::SERVER, server, lacks, options_.cancelled);
      // A restart is under way, and finds out.
      if (options_.cancelled()) return fetched;
      if (!fetched.ok()) options_.log->Warning(fetched.message());
    }
    status = restorer->ReadServers(directory, cut.id(), /*is_complete=*/true);
  }
  status = Annotate(status, "cannot go back to the cut");
  if (!status.ok()) status.SetPayload(kCannotRestorePayload, absl::Cord());
  return status;
}

PendingPart ServerCore::Pending(std::shared_ptr<Part> part) const {
  PendingPart pending{.name = part->name, .cut = part->cut};
  // Bytes, once it is on this server's disk; the copies alone are tried again then.
  auto written = std::make_shared<std::optional<int64_t>>();
  pending.write = [this, files = files_, peers = peers_, part = std::move(part),
                   written](const std::function<bool()>& cancelled) -> absl::StatusOr<int64_t> {
    if (!written->has_value()) {
      RUBATO_ASSIGN_OR_RETURN(*written, WritePart(*files, *part, cancelled));
    }
    if (peers != nullptr) RUBATO_RETURN_IF_ERROR(peers->Send(part->name, part->cut.id(), cancelled));
    return **written;
  };
  return pending;
}

absl::StatusOr<int64_t> ServerCore::WritePart(const PartFiles& files, Part& part,
                                              const std::function<bool()>& cancelled) const {
  const int64_t before = slots_->bytes();
  // What a disk that fails holds may come back in hours.
  const bool first_attempt = part.unfinished == nullptr;
  if (first_attempt) slots_->BeginReturns();
  absl::StatusOr<int64_t> bytes = files.Write(part, cancelled);
  slots_->EndReturns();
  if (const int64_t more = slots_->bytes() - before; more > 0) {
    options_.log->Info(
        absl::StrFormat("%.1f MiB more memory for checkpoints: training overtook the disk while %s was written",
                        more / 1048576.0, part.name));
  }
  if (absl::IsDataLoss(bytes.status()) && options_.on_lost_part) options_.on_lost_part(bytes.status());
  return bytes;
}

std::unique_ptr<PartWriter> ServerCore::MakeWriter() const {
  return std::make_unique<PartWriter>(
      PartWriter::Options{.directory = CheckpointDirectory(options_.config),
                          .task = options_.task,
                          .removes_others = true,
                          .clock = options_.clock,
                          .log = options_.log,
                          .on_checkpoint = [this](const std::string& name) { ReportCheckpoint(name, ""); }});
}

std::shared_ptr<const PartFiles> ServerCore::MakeFiles(const v1::JobDescription& job) const {
  PartFiles::Options files;
  files.directory = CheckpointDirectory(options_.config);
  files.task = options_.task;
  files.job_name = options_.config.name();
  for (const v1::ServerInfo& server : job.servers()) files.servers.push_back(server.task().index());
  return std::make_shared<const PartFiles>(std::move(files));
}

absl::StatusOr<std::vector<std::vector<uint32_t>>> ServerCore::ChunksByPartition(const v1::JobDescription& job) const {
  const uint32_t partitions = options_.config.cluster().partitions_per_server();
  std::vector<std::vector<uint32_t>> chunks(partitions);
  for (int index = 0; index < job.chunks_size(); ++index) {
    const v1::ChunkPlacement& placement = job.chunks(index);
    const size_t tensors = model_.tensors.size();
    const bool is_shard = IsShard(placement) && placement.tensor() >= tensors &&
                          placement.tensor() - tensors < model_.tables.size() && placement.offset() >= 0 &&
                          placement.offset() < model_.tables[placement.tensor() - tensors].config.shards();
    if ((!is_shard && (IsShard(placement) || placement.tensor() >= tensors)) || placement.partition() >= partitions) {
      return absl::FailedPreconditionError(absl::StrCat(
          "chunk ", index, " is of tensor ", placement.tensor(), " in partition ", placement.partition(),
          "; this server's config has ", model_.tensors.size(), " tensors and ", partitions, " partitions"));
    }
    if (placement.server() == options_.task.index()) chunks[placement.partition()].push_back(index);
  }
  return chunks;
}

absl::StatusOr<PartitionOwner::Options> ServerCore::OwnerOptions(const v1::JobDescription* job, uint32_t partition,
                                                                 const std::vector<uint32_t>& chunks) {
  PartitionOwner::Options owner;
  owner.partition = partition;
  owner.config = &options_.config;
  owner.model = &model_;
  owner.job = job;
  owner.chunks = chunks;
  RUBATO_ASSIGN_OR_RETURN(owner.tables, TableStore::Create(options_.config, model_, *job, chunks));
  owner.on_failure = options_.on_failure;
  owner.awaits_weights = AwaitsWeights(*job);
  owner.clock = options_.clock;
  owner.logger = options_.log;
  owner.arena = options_.arena;
  owner.blocks = blocks_;
  owner.slots = slots_;
  owner.trace = options_.trace;
  owner.session_lives = [shared = options_.shared](uint64_t session, const v1::TaskId& task) {
    return shared != nullptr && shared->Find(session, task) != nullptr;
  };
  owner.on_cut = [this](const v1::Plan& plan, std::vector<ChunkSnapshot> captured) {
    OnCaptured(plan, std::move(captured));
  };
  if (!options_.config.cluster().update_log()) return owner;
  v1::LogHeader header;
  header.set_job_name(options_.config.name());
  header.set_server(options_.task.index());
  header.set_partition(partition);
  header.set_server_incarnation(options_.task.incarnation());
  const std::string path =
      JoinPath(options_.config.run_directory(), UpdateLogName(options_.task.index(), partition, job->rollback_term()));
  RUBATO_ASSIGN_OR_RETURN(owner.log, UpdateLogWriter::Create(path, header));
  return owner;
}

std::vector<PartitionOwner*> ServerCore::AllPartitions() {
  MutexLock lock(mu_);
  std::vector<PartitionOwner*> partitions;
  for (const auto& partition : partitions_) partitions.push_back(partition.get());
  return partitions;
}

void ServerCore::OnDirective(const v1::Directive& directive) {
  const std::vector<PartitionOwner*> partitions = AllPartitions();
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
    case v1::Directive::kKeepCheckpoints:
      return KeepCheckpoints(directive.keep_checkpoints());
    // Of the task, or of others.
    case v1::Directive::kRegistered:
    case v1::Directive::kJob:
    case v1::Directive::kShardGrant:
    case v1::Directive::kEvaluate:
    case v1::Directive::kStop:
    case v1::Directive::kRestart:
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
    const auto refused = [&](const absl::Status& why) {
      options_.log->Error(absl::StrCat("the coordinator's plan ", plan.generation(), " is refused: ", why.message()));
    };
    if (!plan_.Take(plan, refused)) return;
  }
  if (plan.has_cut()) BeginCut(plan);
  using Lost = std::vector<v1::LostWorker>;
  auto gather = std::make_shared<Gather<Lost>>(
      partitions.size(),
      [this, generation = plan.generation(), amendment = plan.amendment()](const std::vector<Lost>& lost) {
        v1::TaskMessage message;
        message.mutable_plan_ack()->set_generation(generation);
        message.mutable_plan_ack()->set_amendment(amendment);
        for (const Lost& workers : lost) {
          message.mutable_plan_ack()->mutable_lost()->Add(workers.begin(), workers.end());
        }
        options_.report(std::move(message));
      });
  for (PartitionOwner* partition : partitions) {
    partition->Commit(plan, [gather](Lost lost) { gather->Add(std::move(lost)); });
  }
}

void ServerCore::BeginCut(const v1::Plan& plan) {
  MutexLock lock(mu_);
  if (plan.cut().id() <= cut_.id) return;
  cut_ = {plan.cut().id(), 0, std::make_shared<Part>()};
  for (const auto& partition : partitions_) cut_.missing += partition->has_chunks();
  cut_.part->name = plan.cut().name();
  cut_.part->cut = plan.cut();
  cut_.part->plan = plan;
  writer_->BeginCut(plan.cut());
  if (cut_.missing == 0) writer_->AddCut(Pending(std::move(cut_.part)));
}

void ServerCore::OnCaptured(const v1::Plan& plan, std::vector<ChunkSnapshot> chunks) {
  MutexLock lock(mu_);
  if (plan.cut().id() != cut_.id || cut_.missing == 0) return;  // A newer one has begun.
  std::move(chunks.begin(), chunks.end(), std::back_inserter(cut_.part->chunks));
  if (--cut_.missing == 0) writer_->AddCut(Pending(std::move(cut_.part)));
}

void ServerCore::ReportCheckpoint(const std::string& name, const std::string& error) const {
  v1::TaskMessage message;
  message.mutable_checkpoint_done()->set_name(name);
  message.mutable_checkpoint_done()->set_error(error);
  options_.report(std::move(message));
}

void ServerCore::WriteCheckpoint(const std::vector<PartitionOwner*>& partitions, const std::string& name) {
  if (!IsCheckpointName(name)) {
    const std::string error = absl::StrCat("checkpoint.name: '", name, "'; allowed: step<number>, final, stopped");
    options_.log->Error(error);
    return ReportCheckpoint(name, error);
  }
  auto part = std::make_shared<Part>();
  part->name = name;
  PartWriter* writer = nullptr;
  PendingPart pending;
  {
    MutexLock lock(mu_);
    part->plan = plan_.plan();
    writer = writer_.get();  // Outlives the partitions.
    pending = Pending(part);
  }
  auto gather = std::make_shared<Gather<std::vector<ChunkSnapshot>>>(
      partitions.size(), [part, writer, pending](std::vector<std::vector<ChunkSnapshot>> captured) {
        for (std::vector<ChunkSnapshot>& chunks : captured) {
          std::move(chunks.begin(), chunks.end(), std::back_inserter(part->chunks));
        }
        writer->AddCheckpoint(pending);
      });
  for (PartitionOwner* partition : partitions) {
    partition->Snapshot([gather](std::vector<ChunkSnapshot> chunks) { gather->Add(std::move(chunks)); });
  }
}

void ServerCore::KeepCheckpoints(const v1::KeepCheckpoints& keep) {
  MutexLock lock(mu_);
  writer_->Keep({keep.names().begin(), keep.names().end()});
}

void ServerCore::OnMessage(std::shared_ptr<Connection> connection, const grpc::ByteBuffer& message) {
  PartitionOwner* owner = nullptr;
  PartitionOwner::Incoming incoming;
  if (options_.trace != nullptr && options_.trace->enabled()) incoming.arrived = options_.clock->Now();
  incoming.message_bytes = message.Length();
  thread_local DecodedRequest decoded;  // Its header's memory is used again.
  const absl::Cleanup let_go = [] { decoded.payload = PayloadView(); };
  absl::Status status = DecodeRequest(message, &decoded);
  const bool is_decoded = status.ok();
  if (status.ok()) status = CheckSender(connection->identity(), decoded.header.task());
  // What follows comes up in jobs too: of a plan that was left, before the job has begun.
  if (!status.ok() && options_.refusals != nullptr) {
    options_.refusals->Note(PeerName(connection->identity(), connection->peer()), is_decoded ? "sender" : "decoding",
                            status.message());
  }
  if (status.ok()) status = Route(decoded, &owner, &incoming);
  if (status.ok()) {
    if (options_.on_step) options_.on_step(incoming.request.step);
    incoming.connection = std::move(connection);
    return owner->Submit(std::move(incoming));
  }
  v1::ExchangeReply refusal;
  if (is_decoded) refusal.set_request_id(decoded.header.request_id());
  refusal.set_outcome(v1::ExchangeReply::REFUSED);
  refusal.set_message(std::string(status.message()));
  connection->Release(incoming.message_bytes);
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
  RUBATO_ASSIGN_OR_RETURN(ReceivedRequest received, ReadRequest(message, std::move(region), *job, options_.task.index(),
                                                                {.optimizer = &options_.config.optimizer(),
                                                                 .groups = options_.config.model().manifest().groups()},
                                                                {.model = &model_, .seed = options_.config.seed()}));
  // ReadRequest accepts no chunk of another partition, and a request without chunks has no partition.
  if (*owner == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("partition: ", header.partition(), "; this server has ",
                                                   options_.config.cluster().partitions_per_server()));
  }
  incoming->request_id = header.request_id();
  incoming->request = std::move(received.request);
  incoming->gradient_bytes = received.gradient_bytes;
  incoming->in_shared_memory = received.in_shared_memory;
  incoming->assigns = received.assigns;
  incoming->slot = received.slot;
  incoming->updates = std::move(received.updates);
  incoming->table = std::move(received.table);
  incoming->shared_session = header.shared_session();
  return absl::OkStatus();
}

void ServerCore::OnClosed(uint64_t connection_id) {
  for (PartitionOwner* partition : AllPartitions()) partition->OnClosed(connection_id);
}

v1::ServerProgress ServerCore::Progress() {
  std::vector<PartitionOwner*> partitions = AllPartitions();
  for (size_t i = 0; i < partitions.size(); ++i) {
    partitions[i]->Describe([this, i](PartitionProgress progress) {
      MutexLock lock(mu_);
      progress_[i] = std::move(progress);
    });
  }
  MutexLock lock(mu_);
  v1::ServerProgress total = SumProgress(progress_);
  if (!progress_.empty()) total.set_memory_bytes(total.memory_bytes() + slots_->bytes());
  options_.log->SetPosition(plan_.plan().generation(), total.highest_started_step());
  return total;
}

v1::CutProgress ServerCore::cut_progress() {
  MutexLock lock(mu_);
  return writer_ == nullptr ? v1::CutProgress() : writer_->progress();
}

v1::Plan ServerCore::plan() {
  MutexLock lock(mu_);
  return plan_.plan();
}

}  // namespace rubato::server
