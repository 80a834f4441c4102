#ifndef RUBATO_BENCH_PUSH_PULL_SUBJECT_H_
#define RUBATO_BENCH_PUSH_PULL_SUBJECT_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace rubato::bench {

// Of the job whose credentials a setup may have.
inline constexpr char kJobName[] = "push_pull_bench";

// One thing to measure and what it shall do. Every subject does the same work: the client's gradient of a chunk reaches
// the server, is added to the weights there, and the new weights reach the client's own memory. Chunks are
// used round-robin, so that on both sides all memory is cycled through.
struct Setup {
  // Bytes of a chunk, which is a message's payload: a power of 4, at least 4096.
  int64_t size = 0;
  // Messages in flight at a time.
  int in_flight = 1;
  // Gradients, and as much of weights, that a side cycles through. More than the last-level cache.
  int64_t cycle_bytes = int64_t{64} << 20;
  // Channel arguments for subjects that set their own, "key=value,key=value".
  std::string channel_arguments;
  // For the sockets that a subject makes itself, both found to be fastest: congestion control ("system": as it is), and
  // the size of their buffers (0: as the system likes), which with large messages stay in the cache only if they are
  // bounded.
  std::string congestion = "reno";
  int socket_buffer_bytes = 1 << 20;
  // Unix-domain sockets there instead of TCP.
  bool unix_socket = false;
  // A folder with credentials of server 0 and worker 0: both prove with them who they are, over TLS. Empty: nobody
  // does.
  std::string credentials;

  int64_t floats() const { return size / static_cast<int64_t>(sizeof(float)); }
  // As many as in_flight at least.
  int64_t chunks() const { return std::max<int64_t>(cycle_bytes / size, in_flight); }
};

struct Count {
  int64_t round_trips = 0;
  absl::Duration elapsed;
};

// The client's side, connected. Used by one thread.
class Client {
 public:
  virtual ~Client() = default;
  // Exchanges chunks for about `duration`, until nothing is in flight any more.
  virtual absl::StatusOr<Count> Run(absl::Duration duration) = 0;
  // DataLoss when a chunk's weights are not what was pushed to it in all runs.
  virtual absl::Status Verify() = 0;
};

// Tells the clients where the server is. Called once.
using Ready = std::function<void(const std::string& address)>;

struct Subject {
  std::string name;
  // The server's process: serves one client; returns when that has gone, or not at all.
  absl::Status (*serve)(const Setup& setup, const Ready& ready);
  absl::StatusOr<std::unique_ptr<Client>> (*connect)(const Setup& setup, const std::string& address);
  // Whether it has a meaning with one message in flight.
  bool one_in_flight = true;
  // Whether it can speak TLS.
  bool tls = false;
};

// All of them, in the order of the table.
std::vector<Subject> Subjects();

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_SUBJECT_H_
