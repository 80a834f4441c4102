#include "common/part_copies/part_peers.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/checkpoint_directory.h"
#include "common/grpc_status.h"
#include "common/mutex.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"
#include "common/task.h"

namespace rubato {
namespace {

constexpr uint32_t kPieceBytes = 4u << 20;
// A piece that takes longer is taken for lost: a disk writes it in much less.
constexpr std::chrono::seconds kPieceTimeout{30};
// How often a call looks whether it is to end.
constexpr absl::Duration kLook = absl::Milliseconds(50);
// Between two rounds of asking.
constexpr absl::Duration kPause = absl::Milliseconds(200);

std::string HostOf(const v1::ServerInfo& server) { return server.address().substr(0, server.address().rfind(':')); }

std::string ServerText(const v1::ServerInfo& server) {
  return absl::StrCat(TaskName(server.task()), " (", server.address(), ")");
}

std::unique_ptr<v1::PartCopies::Stub> MakeStub(const v1::ServerInfo& server, const TaskSecurity* security) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return v1::PartCopies::NewStub(
      OpenChannel(server.address(), Party::kServer, server.task().index(), security, arguments));
}

absl::Status GivenUp(const v1::PartName& part) {
  return absl::CancelledError(absl::StrCat("the copy of ", part.checkpoint(), " is given up"));
}

// Makes a call, `start(context, done)`, that ends soon when `cancelled` says yes.
template <typename Start>
absl::Status Call(const Start& start, const PartPeers::Cancelled& cancelled) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPieceTimeout);
  Mutex mu;
  CondVar changed;
  bool ended = false;
  grpc::Status result;
  start(&context, [&](const grpc::Status& status) {
    MutexLock lock(mu);
    result = status;
    ended = true;
    changed.NotifyAll();
  });
  MutexLock lock(mu);
  while (!ended) {
    if (!changed.WaitFor(mu, kLook) && cancelled()) context.TryCancel();
  }
  return FromGrpcStatus(result);
}

}  // namespace

std::vector<v1::ServerInfo> ServersForCopies(const std::vector<v1::ServerInfo>& servers, const v1::TaskId& task,
                                             size_t count) {
  std::vector<v1::ServerInfo> others;
  std::set<std::string> hosts;
  for (const v1::ServerInfo& server : servers) {
    const bool itself = task.role() == v1::TaskId::SERVER && server.task().index() == task.index();
    if (itself) hosts.insert(HostOf(server));
    if (!itself) others.push_back(server);
  }
  if (others.empty()) return {};
  // From the first one after a server, and spread over all for workers.
  auto first = task.role() == v1::TaskId::SERVER
                   ? std::find_if(others.begin(), others.end(),
                                  [&](const v1::ServerInfo& server) { return server.task().index() > task.index(); })
                   : others.begin() + static_cast<int64_t>(task.index() % others.size());
  std::rotate(others.begin(), first == others.end() ? others.begin() : first, others.end());
  std::vector<v1::ServerInfo> chosen;
  for (const bool other_host : {true, false}) {
    for (const v1::ServerInfo& server : others) {
      if (chosen.size() == count) return chosen;
      const bool taken = std::any_of(chosen.begin(), chosen.end(), [&](const v1::ServerInfo& one) {
        return one.task().index() == server.task().index();
      });
      if (taken || (other_host && !hosts.insert(HostOf(server)).second)) continue;
      chosen.push_back(server);
    }
  }
  return chosen;
}

PartPeers::PartPeers(Options options) : options_(std::move(options)) {
  const std::vector<v1::ServerInfo> holders = ServersForCopies(options_.servers, options_.task, options_.count);
  std::vector<v1::ServerInfo> others;
  for (const v1::ServerInfo& server : options_.servers) {
    if (options_.task.role() == v1::TaskId::SERVER && server.task().index() == options_.task.index()) continue;
    for (const v1::ServerInfo& holder : holders) {
      if (holder.task().index() == server.task().index()) holders_.push_back(peers_.size());
    }
    peers_.push_back({server, MakeStub(server, options_.security.get())});
  }
  if (holders.size() < options_.count) {
    options_.log->Warning(absl::StrCat("copies of this task's checkpoints: ", holders.size(), " instead of ",
                                       options_.count, ", as the job has ", options_.servers.size(), " servers"));
  }
}

PartPeers::~PartPeers() = default;

v1::PartName PartPeers::NameOf(const std::string& checkpoint, uint64_t cut_id, v1::TaskId::Role role,
                               uint32_t index) const {
  v1::PartName part;
  part.set_job_fingerprint(options_.job_fingerprint);
  part.set_checkpoint(checkpoint);
  part.set_cut_id(cut_id);
  part.set_role(role);
  part.set_index(index);
  return part;
}

absl::Status PartPeers::Send(const std::string& checkpoint, uint64_t cut_id, const Cancelled& cancelled) const {
  const v1::PartName part = NameOf(checkpoint, cut_id, options_.task.role(), options_.task.index());
  for (size_t holder : holders_) {
    const Peer& peer = peers_[holder];
    RUBATO_RETURN_IF_ERROR(
        Annotate(SendTo(peer, part, cancelled), absl::StrCat("no copy on ", ServerText(peer.server))));
  }
  return absl::OkStatus();
}

absl::Status PartPeers::SendTo(const Peer& peer, const v1::PartName& part, const Cancelled& cancelled) const {
  const std::string directory = JoinPath(options_.directory, part.checkpoint());
  v1::WritePartRequest request;
  *request.mutable_part() = part;
  RUBATO_ASSIGN_OR_RETURN(*request.mutable_manifest(),
                          ReadCheckpointManifest(directory, part.role(), part.index(), part.cut_id()));
  const uint64_t bytes = request.manifest().data_bytes();
  // The first says what it is about, and brings data only if the server has to have them.
  for (uint64_t offset = 0;;) {
    if (cancelled()) return GivenUp(part);
    v1::WritePartReply reply;
    RUBATO_RETURN_IF_ERROR(
        Call([&](grpc::ClientContext* context,
                 auto done) { peer.stub->async()->Write(context, &request, &reply, std::move(done)); },
             cancelled));
    if (reply.complete()) return absl::OkStatus();
    offset += request.data().size();
    if (offset >= bytes) return absl::InternalError("it has taken all of the part, and does not say that it has it");
    request.clear_manifest();
    RUBATO_ASSIGN_OR_RETURN(*request.mutable_data(),
                            ReadCheckpointData(directory, part.role(), part.index(), offset, kPieceBytes));
    if (request.data().empty()) {
      return absl::DataLossError(absl::StrCat(directory, ": its data end at ", offset, " of ", bytes, " bytes"));
    }
    request.set_offset(offset);
  }
}

absl::StatusOr<v1::ReadPartReply> PartPeers::ReadFrom(const Peer& peer, const v1::PartName& part, uint64_t offset,
                                                      uint32_t bytes, const Cancelled& cancelled) const {
  v1::ReadPartRequest request;
  *request.mutable_part() = part;
  request.set_offset(offset);
  request.set_bytes(bytes);
  v1::ReadPartReply reply;
  RUBATO_RETURN_IF_ERROR(Call([&](grpc::ClientContext* context,
                                  auto done) { peer.stub->async()->Read(context, &request, &reply, std::move(done)); },
                              cancelled));
  return reply;
}

absl::Status PartPeers::FetchFrom(const Peer& peer, const v1::PartName& part,
                                  const std::function<bool(const v1::CheckpointManifest&)>& wanted,
                                  const Cancelled& cancelled) const {
  RUBATO_ASSIGN_OR_RETURN(const v1::ReadPartReply first, ReadFrom(peer, part, 0, 0, cancelled));
  const v1::CheckpointManifest& manifest = first.manifest();
  if (!wanted(manifest)) return absl::OkStatus();
  const v1::TaskId& task = manifest.task();
  if (task.role() != part.role() || task.index() != part.index()) {
    return absl::DataLossError(absl::StrCat("sent the part of ", TaskName(task), ", asked for ",
                                            CheckpointPartName(part.role(), part.index())));
  }
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointWriter> writer,
                          CheckpointWriter::Create(JoinPath(options_.directory, part.checkpoint()), task));
  for (uint64_t offset = 0; offset < manifest.data_bytes();) {
    if (cancelled()) return GivenUp(part);
    RUBATO_ASSIGN_OR_RETURN(const v1::ReadPartReply piece, ReadFrom(peer, part, offset, kPieceBytes, cancelled));
    if (piece.data().empty()) {
      return absl::DataLossError(absl::StrCat("its data end at ", offset, " of ", manifest.data_bytes(), " bytes"));
    }
    RUBATO_RETURN_IF_ERROR(writer->Copy(piece.data()));
    offset += piece.data().size();
  }
  return writer->FinishCopy(manifest);
}

absl::Status PartPeers::Fetch(const std::string& checkpoint, uint64_t cut_id, v1::TaskId::Role role, uint32_t index,
                              const std::function<bool(const v1::CheckpointManifest&)>& wanted,
                              const Cancelled& cancelled) const {
  const v1::PartName part = NameOf(checkpoint, cut_id, role, index);
  const std::string what = absl::StrCat(CheckpointPartName(role, index), " of ", checkpoint);
  const absl::Time deadline = options_.clock->Now() + options_.timeout;
  for (;;) {
    absl::Status silent;
    for (const Peer& peer : peers_) {
      if (cancelled()) return GivenUp(part);
      const absl::Status status = FetchFrom(peer, part, wanted, cancelled);
      if (status.ok()) return status;
      if (absl::IsNotFound(status)) continue;
      const absl::Status error = Annotate(status, ServerText(peer.server));
      // A server that ends cancels its calls.
      if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status) && !absl::IsCancelled(status)) {
        options_.log->Warning(absl::StrCat("cannot fetch ", what, ": ", error.message()));
        continue;
      }
      silent.Update(error);
    }
    if (silent.ok()) return absl::NotFoundError(absl::StrCat("no server has ", what));
    if (options_.clock->Now() >= deadline) {
      return absl::UnavailableError(absl::StrCat("nobody who answers has ", what, ": ", silent.message()));
    }
    options_.clock->Sleep(kPause);
  }
}

std::shared_ptr<const PartPeers> MakePartPeers(const v1::JobConfig& config, const v1::JobDescription& job,
                                               const v1::TaskId& task, std::shared_ptr<const TaskSecurity> security,
                                               Clock* clock, Logger* log) {
  const uint32_t copies = config.checkpoint().copies();
  if (copies <= 1) return nullptr;
  return std::make_shared<const PartPeers>(
      PartPeers::Options{.directory = CheckpointDirectory(config),
                         .task = task,
                         .job_fingerprint = job.fingerprint(),
                         .servers = {job.servers().begin(), job.servers().end()},
                         .count = task.role() == v1::TaskId::SERVER ? copies - 1 : copies,
                         .security = std::move(security),
                         .timeout = absl::Seconds(config.cluster().start_timeout_seconds()),
                         .clock = clock,
                         .log = log});
}

}  // namespace rubato
