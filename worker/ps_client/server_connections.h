#ifndef RUBATO_WORKER_PS_CLIENT_SERVER_CONNECTIONS_H_
#define RUBATO_WORKER_PS_CLIENT_SERVER_CONNECTIONS_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/network_link/link_relay.h"
#include "common/security/task_security.h"
#include "common/shared_memory/arena.h"
#include "common/shared_memory/link.h"
#include "common/shared_memory/region.h"
#include "common/transport/exchange_client.h"
#include "proto/coordinator.pb.h"

namespace rubato::worker {

// A worker's connections to all servers of its job, `per_server` to each: opens them, opens those again that break or
// fall silent, and tells when a server cannot be reached. If server and worker share memory, a connection comes with
// it. Thread-safe.
class ServerConnections {
 public:
  // Called on threads of the connections, without their lock. A connection is not replaced while a message of it is
  // handled.
  class Handler {
   public:
    virtual ~Handler() = default;
    // Messages that came together, at least one. `memory` is shared with the server; null if tensors travel in
    // messages. What a message says is there stays as it is as long as somebody holds the link and asks for nothing
    // else in its place.
    virtual void OnMessages(int connection, std::vector<grpc::ByteBuffer> messages,
                            std::shared_ptr<const SharedMemoryLink> memory) = 0;
    // It is open. What was sent through the one before it, and not answered, may be lost.
    virtual void OnConnected(int connection) = 0;
    // Unavailable: a server cannot be reached for longer than reconnect_timeout. Comes again as long as it cannot.
    virtual void OnUnreachable(absl::Status status) = 0;
    // By connection: whether something was sent that is to be answered.
    virtual std::vector<bool> AwaitsAnswer() = 0;
  };

  struct Options {
    v1::TaskId task;
    // How it proves that it belongs to the job, and whom it believes to. Null: it does not, and everybody.
    std::shared_ptr<const TaskSecurity> security = nullptr;
    std::vector<v1::ServerInfo> servers;
    int per_server = 1;
    // Offered to servers on this host to read from. Null: no memory is shared.
    std::shared_ptr<SharedArena> arena;
    // Null: servers are reached directly.
    std::shared_ptr<LinkRelay> link;
    absl::Duration reconnect_timeout = absl::Seconds(60);
    const Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  // `handler` outlives it.
  ServerConnections(Options options, Handler* handler);
  // No call of the handler is running or comes after it has returned. Not to be called from the handler.
  ~ServerConnections();
  ServerConnections(const ServerConnections&) = delete;
  ServerConnections& operator=(const ServerConnections&) = delete;

  // Once: begins to open them.
  void Start();

  // Connection `turn` of a server; and the server's name, such as "server 1".
  int IndexOf(uint32_t server, int turn) const { return static_cast<int>(server) * options_.per_server + turn; }
  const std::string& name(int connection) const;

  // Sends what `make` returns, ahead of messages with a higher priority number. `make` is given the memory that is
  // shared with the server, or null, and must not call this object. Does nothing if the connection is not open:
  // OnConnected follows. `more`: it may wait for FlushAll, so as to travel with what follows.
  void Send(int connection, int64_t priority, absl::FunctionRef<grpc::ByteBuffer(const SharedMemoryLink* memory)> make,
            bool more = false);
  void FlushAll();

  // Whether all that are open share memory.
  bool all_share_memory();

 private:
  // The handler of one stream; a new one takes its place when the stream breaks.
  class Stream : public ExchangeClient::Handler {
   public:
    Stream(ServerConnections* owner, int index) : owner_(owner), index_(index) {}
    void OnMessages(std::vector<grpc::ByteBuffer> messages) override {
      owner_->OnMessages(index_, this, std::move(messages));
    }
    void OnDisconnected(absl::Status status) override { owner_->OnDisconnected(index_, this, std::move(status)); }

   private:
    ServerConnections* const owner_;
    const int index_;
  };

  struct Connection {
    // The client's callbacks use the other two, so it goes before them. Null `stream`: it is broken, or not open yet.
    std::shared_ptr<const SharedMemoryLink> memory;
    std::unique_ptr<Stream> stream;
    std::unique_ptr<ExchangeClient> client;
    absl::Time down_since;
    absl::Time retry_at = absl::InfinitePast();
    // When the server was heard last, or nothing was owed.
    absl::Time heard_at = absl::InfinitePast();
  };

  const v1::ServerInfo& ServerOf(int index) const { return options_.servers[index / options_.per_server]; }
  void OnMessages(int index, const Stream* stream, std::vector<grpc::ByteBuffer> messages);
  void OnDisconnected(int index, const Stream* stream, absl::Status status);
  // The thread: opens what is not open, until the end.
  void Maintain();
  // Those that are to be opened now; waits a little if there is none.
  std::vector<int> AwaitBroken(const std::vector<bool>& awaits_answer);
  // These at the same time, so that none waits for servers that do not answer.
  void ReopenAll(const std::vector<int>& broken);
  void Reopen(int index);
  absl::Status Open(int index, Connection* opened);
  // Null if the server does not share memory with this worker.
  std::unique_ptr<SharedMemoryLink> ShareMemory(int index);

  const Options options_;
  Handler* const handler_;
  std::vector<std::string> names_;  // By connection.
  Mutex mu_;
  CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_SERVER_CONNECTIONS_H_
