#ifndef RUBATO_COMMON_SHARED_MEMORY_LISTENER_H_
#define RUBATO_COMMON_SHARED_MEMORY_LISTENER_H_

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/file_descriptor.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/shared_memory/region.h"
#include "common/shared_memory/unix_socket.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// A server's side of shared memory: gives its region to the workers on its host that connect, and takes theirs. Only
// processes of the same user are let in. One thread serves all sockets and waits for none of the peers. Thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(auto listener, SharedMemoryListener::Create({.offered = arena->shared_region(), ...}));
//   *registration.mutable_shared_memory() = listener->address();
//   std::shared_ptr<const SharedRegion> region = listener->Find(request.shared_session(), request.task());
class SharedMemoryListener {
 public:
  struct Options {
    // The server's own region, which every peer maps read-only.
    std::shared_ptr<const SharedRegion> offered = nullptr;
    // A peer that offers more is refused.
    size_t peer_bytes_max = size_t{1} << 36;
    // Peers at a time; a further one is refused.
    size_t peers_max = 256;
    // A peer that connects and says nothing for so long is dropped.
    absl::Duration hello_timeout = absl::Seconds(2);
    // A clock that moves by itself. It and the log outlive the listener.
    const Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  // Listens when it returns, on an abstract socket with a random name. InvalidArgument: an option is missing or out of
  // range. Otherwise the system's code: no /proc, too many open files, ...
  static absl::StatusOr<std::unique_ptr<SharedMemoryListener>> Create(Options options);

  // Hangs up on every peer. Regions that Find returned stay mapped for their holders.
  ~SharedMemoryListener();
  SharedMemoryListener(const SharedMemoryListener&) = delete;
  SharedMemoryListener& operator=(const SharedMemoryListener&) = delete;

  // For Register.shared_memory.
  const v1::SharedMemoryAddress& address() const { return address_; }

  // The region of the peer with that session, or null when there is none (any more) or it is another task's. A peer
  // that has hung up is forgotten, and its region unmapped when nobody holds it any more. Cheap: one look-up under a
  // lock that is never held for long.
  std::shared_ptr<const SharedRegion> Find(uint64_t session, const v1::TaskId& task) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A connection. Those without a session have still to say hello.
  struct Peer {
    FileDescriptor socket;
    std::string description;
    absl::Time hello_deadline;
    uint64_t session = 0;
  };

  struct Session {
    v1::TaskId task;
    std::shared_ptr<const SharedRegion> region;
  };

  SharedMemoryListener(Options options, v1::SharedMemoryAddress address, FileDescriptor listening, FileDescriptor stop);

  // All below runs on the thread.
  void Run();
  // Sockets in the order: stop, listening, peers. A full house does not look at the listening one.
  std::vector<pollfd> SocketsToWatch(absl::Time now) const;
  // -1 for ever; otherwise until the next deadline, in milliseconds.
  int PollTimeout(absl::Time now) const;
  void AcceptPeers();
  void ServePeers(const std::vector<pollfd>& watched);
  void ReadFrom(Peer& peer);
  absl::StatusOr<uint64_t> Admit(absl::StatusOr<Packet> hello) ABSL_LOCKS_EXCLUDED(mu_);
  void Welcome(Peer& peer, uint64_t session);
  // Tells the peer why, if it may know, and hangs up.
  void Refuse(Peer& peer, const absl::Status& reason, bool tell);
  void HangUp(Peer& peer) ABSL_LOCKS_EXCLUDED(mu_);
  bool IsFull() const ABSL_LOCKS_EXCLUDED(mu_);
  size_t NewcomerCount() const;

  const Options options_;
  const v1::SharedMemoryAddress address_;
  const FileDescriptor listening_;
  // An event that ends the thread.
  const FileDescriptor stop_;

  // The thread's own.
  std::vector<Peer> peers_;
  // Until then nobody is accepted, because there was no room for another open file.
  absl::Time accept_after_ = absl::InfinitePast();
  uint64_t refused_total_ = 0;

  mutable Mutex mu_;
  absl::flat_hash_map<uint64_t, Session> sessions_ ABSL_GUARDED_BY(mu_);

  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace rubato

#endif  // RUBATO_COMMON_SHARED_MEMORY_LISTENER_H_
