#include "worker/ps_client/server_connections.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato::worker {
namespace {

constexpr absl::Duration kRetryInterval = absl::Milliseconds(100);
// A server answers every request within its timeout, if only with WAITING; one that is silent for longer is gone.
constexpr absl::Duration kSilence = absl::Seconds(20);
constexpr absl::Duration kConnectTimeout = absl::Seconds(2);
constexpr size_t kOpenedAtOnce = 16;
constexpr absl::Duration kMaintenancePeriod = absl::Milliseconds(50);
// Of address space, to map a server's memory.
constexpr size_t kServerMemoryMax = size_t{1} << 46;

}  // namespace

ServerConnections::ServerConnections(Options options, Handler* handler)
    : options_(std::move(options)), handler_(handler), connections_(options_.servers.size() * options_.per_server) {
  for (size_t index = 0; index < connections_.size(); ++index) {
    connections_[index].down_since = options_.clock->Now();
    names_.push_back(TaskName(ServerOf(static_cast<int>(index)).task()));
  }
}

ServerConnections::~ServerConnections() {
  std::vector<Connection> connections;
  {
    MutexLock lock(mu_);
    stop_ = true;
    connections.swap(connections_);
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
  // Clients wait for their callbacks when they end, so this is done without the lock.
  for (Connection& connection : connections) connection.client.reset();
}

void ServerConnections::Start() {
  thread_ = std::thread([this] { Maintain(); });
}

const std::string& ServerConnections::name(int connection) const { return names_[connection]; }

void ServerConnections::Send(int connection, int64_t priority,
                             absl::FunctionRef<grpc::ByteBuffer(const SharedMemoryLink* memory)> make, bool more) {
  MutexLock lock(mu_);
  if (stop_ || connections_[connection].client == nullptr) return;
  ExchangeClient& client = *connections_[connection].client;
  client.Queue(make(connections_[connection].memory.get()), priority);
  if (!more) client.Flush();
}

void ServerConnections::FlushAll() {
  MutexLock lock(mu_);
  if (stop_) return;
  for (const Connection& connection : connections_) {
    if (connection.client != nullptr) connection.client->Flush();
  }
}

bool ServerConnections::all_share_memory() {
  MutexLock lock(mu_);
  for (const Connection& connection : connections_) {
    if (connection.client != nullptr && connection.memory == nullptr) return false;
  }
  return true;
}

void ServerConnections::OnMessages(int index, const Stream* stream, std::vector<grpc::ByteBuffer> messages) {
  std::shared_ptr<const SharedMemoryLink> memory;
  {
    MutexLock lock(mu_);
    if (stop_ || connections_[index].stream.get() != stream) return;
    connections_[index].heard_at = options_.clock->Now();
    memory = connections_[index].memory;
  }
  handler_->OnMessages(index, std::move(messages), std::move(memory));
}

void ServerConnections::OnDisconnected(int index, const Stream* stream, absl::Status status) {
  MutexLock lock(mu_);
  if (stop_ || connections_[index].stream.get() != stream) return;
  options_.log->Warning(absl::StrCat("connection to ", name(index), " at ", ServerOf(index).address(),
                                     " broke: ", status.message(), "; connecting again"));
  connections_[index].stream = nullptr;  // The thread ends the client, which its own callback must not do.
  wake_.NotifyAll();
}

void ServerConnections::Maintain() {
  for (;;) {
    const std::vector<bool> awaits_answer = handler_->AwaitsAnswer();
    const std::vector<int> broken = AwaitBroken(awaits_answer);
    ReopenAll(broken);
    MutexLock lock(mu_);
    if (stop_) return;
  }
}

std::vector<int> ServerConnections::AwaitBroken(const std::vector<bool>& awaits_answer) {
  MutexLock lock(mu_);
  std::vector<int> broken;
  if (stop_) return broken;
  const absl::Time now = options_.clock->Now();
  for (size_t index = 0; index < connections_.size(); ++index) {
    Connection& connection = connections_[index];
    if (!awaits_answer[index]) connection.heard_at = now;
    const bool silent = connection.client != nullptr && now - connection.heard_at > kSilence;
    const bool due = now >= connection.retry_at;
    if (due && (connection.stream == nullptr || silent)) broken.push_back(static_cast<int>(index));
  }
  if (broken.empty()) wake_.WaitFor(mu_, kMaintenancePeriod);
  return broken;
}

void ServerConnections::ReopenAll(const std::vector<int>& broken) {
  std::atomic<size_t> next = 0;
  const auto reopen = [&] {
    for (size_t i = next++; i < broken.size(); i = next++) Reopen(broken[i]);
  };
  std::vector<std::thread> others;
  while (others.size() + 1 < std::min(broken.size(), kOpenedAtOnce)) others.emplace_back(reopen);
  reopen();
  for (std::thread& thread : others) thread.join();
}

void ServerConnections::Reopen(int index) {
  {
    Connection old;
    {
      MutexLock lock(mu_);
      if (stop_) return;
      Connection& connection = connections_[index];
      old.memory = std::move(connection.memory);
      old.stream = std::move(connection.stream);
      old.client = std::move(connection.client);
      if (old.client != nullptr) connection.down_since = options_.clock->Now();
    }
    old.client.reset();  // Waits for its callbacks, hence without the lock.
  }
  Connection opened;
  absl::Status status = Open(index, &opened);
  absl::Time down_since, now;
  {
    MutexLock lock(mu_);
    if (stop_) return;
    now = options_.clock->Now();
    Connection& connection = connections_[index];
    down_since = connection.down_since;
    // A stream that broke before it is the connection's is nobody's to be told of.
    if (status.ok() && !opened.client->connected()) {
      status = absl::UnavailableError("the stream broke as soon as it was open");
    }
    if (status.ok()) {
      connection.memory = std::move(opened.memory);
      connection.stream = std::move(opened.stream);
      connection.client = std::move(opened.client);
      connection.heard_at = now;
    } else {
      connection.retry_at = now + kRetryInterval;
    }
  }
  if (status.ok()) return handler_->OnConnected(index);
  if (now - down_since <= options_.reconnect_timeout) return;
  handler_->OnUnreachable(
      absl::UnavailableError(absl::StrCat(name(index), " at ", ServerOf(index).address(), " cannot be reached since ",
                                          absl::FormatDuration(now - down_since), ": ", status.message())));
}

absl::Status ServerConnections::Open(int index, Connection* opened) {
  opened->stream = std::make_unique<Stream>(this, index);
  ExchangeClient::Options options;
  options.address = ServerOf(index).address();
  options.server = ServerOf(index).task().index();
  options.security = options_.security;
  if (options_.link != nullptr) {
    RUBATO_ASSIGN_OR_RETURN(options.address, options_.link->AddressFor(options.address));
  }
  options.connect_timeout = kConnectTimeout;
  absl::StatusOr<std::unique_ptr<ExchangeClient>> client = ExchangeClient::Create(options, opened->stream.get());
  if (!client.ok()) return client.status();
  opened->client = *std::move(client);
  opened->memory = ShareMemory(index);
  return absl::OkStatus();
}

std::unique_ptr<SharedMemoryLink> ServerConnections::ShareMemory(int index) {
  const v1::SharedMemoryAddress& address = ServerOf(index).shared_memory();
  if (options_.arena == nullptr || address.socket().empty()) return nullptr;
  absl::StatusOr<std::unique_ptr<SharedMemoryLink>> link = SharedMemoryLink::Connect(
      address, options_.task, options_.arena->shared_region(), kServerMemoryMax, kConnectTimeout);
  if (link.ok()) return *std::move(link);
  // FailedPrecondition: it is on another host.
  if (!absl::IsFailedPrecondition(link.status())) {
    options_.log->Info(absl::StrCat("tensors to and from ", name(index), " go over TCP: ", link.status().message()));
  }
  return nullptr;
}

}  // namespace rubato::worker
