#include "bench/job_server.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "common/mutex.h"
#include "common/shared_memory/arena.h"
#include "common/shared_memory/blocks.h"
#include "common/shared_memory/listener.h"
#include "common/status.h"
#include "common/transport/exchange_server.h"
#include "google/protobuf/text_format.h"
#include "server/server_core.h"

namespace rubato::bench {
namespace {

// For the client to begin.
constexpr absl::Duration kStartTimeout = absl::Minutes(1);
// Between a client's messages: others take their turns meanwhile.
constexpr absl::Duration kSilence = absl::Hours(1);

class Handler : public ConnectionHandler {
 public:
  Handler(server::ServerCore* core, const Clock* clock) : core_(core), clock_(clock) {}
  void OnMessage(std::shared_ptr<Connection> connection, grpc::ByteBuffer&& message) override {
    messages_.fetch_add(1, std::memory_order_relaxed);
    core_->OnMessage(std::move(connection), message);
  }
  void OnClosed(uint64_t connection) override {
    core_->OnClosed(connection);
    MutexLock lock(mu_);
    closed_ = true;
    changed_.NotifyAll();
  }

  // Waits until a client has gone. DeadlineExceeded if none sends anything.
  absl::Status AwaitClosed() {
    int64_t seen = 0;
    absl::Duration timeout = kStartTimeout;
    absl::Time deadline = clock_->Now() + timeout;
    MutexLock lock(mu_);
    while (!closed_) {
      changed_.WaitFor(mu_, deadline - clock_->Now());
      if (closed_ || clock_->Now() < deadline) continue;
      const int64_t messages = messages_.load(std::memory_order_relaxed);
      if (messages == seen) {
        return absl::DeadlineExceededError(absl::StrCat("server 0 waited ", absl::FormatDuration(timeout),
                                                        " for a message of a worker, after ", seen, " messages"));
      }
      seen = messages;
      timeout = kSilence;
      deadline = clock_->Now() + timeout;
    }
    return absl::OkStatus();
  }

 private:
  server::ServerCore* const core_;
  const Clock* const clock_;
  std::atomic<int64_t> messages_{0};
  Mutex mu_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

// What a server offers to tasks on its host; null members if it offers nothing.
struct SharedMemory {
  std::shared_ptr<SharedArena> arena;
  std::unique_ptr<SharedMemoryListener> listener;
};

absl::StatusOr<SharedMemory> OfferSharedMemory(const v1::JobConfig& config, const v1::JobDescription& job,
                                               const Clock* clock, Logger* log) {
  SharedMemory shared;
  if (config.cluster().shared_memory() == v1::ClusterConfig::OFF) return shared;
  // Four versions of the weights: more than a benchmark's few workers read at a time.
  size_t bytes = size_t{1} << 20;
  for (const v1::ChunkPlacement& chunk : job.chunks()) bytes += 4 * sizeof(float) * chunk.length();
  if (config.model().tables_size() > 0) bytes += kRowRoomBytes;
  RUBATO_ASSIGN_OR_RETURN(shared.arena, SharedArena::Create("server 0", bytes));
  SharedMemoryListener::Options options;
  options.offered = shared.arena->shared_region();
  options.clock = clock;
  options.log = log;
  RUBATO_ASSIGN_OR_RETURN(shared.listener, SharedMemoryListener::Create(std::move(options)));
  return shared;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TaskSecurity>> OpenSecurity(const v1::JobConfig& config, Party party) {
  const std::string& folder = config.security().credentials();
  if (folder.empty()) return nullptr;
  return TaskSecurity::Create({.credentials = folder, .job = config.name(), .party = party, .now = absl::Now()});
}

v1::ServerInfo TheServer() {
  v1::ServerInfo info;
  info.mutable_task()->set_role(v1::TaskId::SERVER);
  info.mutable_task()->set_incarnation(2);
  return info;
}

absl::Status ServeJob(const v1::JobConfig& config, const v1::JobDescription& job, const v1::Plan& plan,
                      const std::function<void(const v1::ServerInfo&)>& ready) {
  RealClock clock;
  Logger log("server 0", &clock);
  RUBATO_ASSIGN_OR_RETURN(const SharedMemory shared, OfferSharedMemory(config, job, &clock, &log));
  v1::ServerInfo info = TheServer();
  server::ServerCore::Options options;
  options.shared = shared.listener.get();
  options.arena = shared.arena;
  options.config = config;
  options.task = info.task();
  options.clock = &clock;
  options.log = &log;
  options.report = [](v1::TaskMessage) {};
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<server::ServerCore> core, server::ServerCore::Create(options));
  Handler handler(core.get(), &clock);
  RUBATO_ASSIGN_OR_RETURN(const std::shared_ptr<const TaskSecurity> security, OpenSecurity(config, Party::kServer));
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<ExchangeServer> server,
                          ExchangeServer::Create({.listen = "127.0.0.1:0", .security = security}, &handler));
  RUBATO_RETURN_IF_ERROR(core->StartJob(job));
  v1::Directive commit;
  *commit.mutable_commit()->mutable_plan() = plan;
  core->OnDirective(commit);
  info.set_address(absl::StrCat("127.0.0.1:", server->port()));
  if (shared.listener != nullptr) *info.mutable_shared_memory() = shared.listener->address();
  ready(info);
  const absl::Status status = handler.AwaitClosed();
  server->Shutdown();
  return status;
}

absl::StatusOr<v1::ServerInfo> ParseServerInfo(const std::string& text) {
  v1::ServerInfo info;
  if (!google::protobuf::TextFormat::ParseFromString(text, &info)) {
    return absl::InvalidArgumentError(absl::StrCat("server: \"", text, "\" is not a ServerInfo"));
  }
  return info;
}

}  // namespace rubato::bench
