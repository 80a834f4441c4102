#ifndef RUBATO_SERVER_WEIGHT_LEASES_H_
#define RUBATO_SERVER_WEIGHT_LEASES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/parameter_server.pb.h"

namespace rubato::server {

// Buffers of weights, or of rows of a table, that workers may be reading in shared memory. Each is held until its
// worker asks for the chunk again, which it does when it has what it read, or until the worker's side of the session is
// gone. The end of a stream ends no lease: the worker may be copying what came on it, and hangs up on the session when
// it is done. Not thread-safe.
class WeightLeases {
 public:
  // Whether a worker's side of a shared memory session is still there.
  using SessionLives = std::function<bool(uint64_t session, const v1::TaskId& task)>;

  explicit WeightLeases(SessionLives session_lives) : session_lives_(std::move(session_lives)) {}

  // The task asks for these chunks, and so reads no longer what it had of them.
  void TakeBack(uint64_t session, const v1::TaskId& task, const std::vector<uint32_t>& chunks);
  // The answer that says where the buffer is, is about to be sent. Rows are those of the answer's first shard.
  void Lend(uint64_t session, uint32_t chunk, std::shared_ptr<const void> buffer);
  // Ends the leases of sessions that are gone.
  void DropDead();

 private:
  struct Lease {
    v1::TaskId task;
    absl::flat_hash_map<uint32_t, std::shared_ptr<const void>> buffers;  // By chunk.
  };

  const SessionLives session_lives_;
  absl::flat_hash_map<uint64_t, Lease> leases_;  // By session.
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_WEIGHT_LEASES_H_
