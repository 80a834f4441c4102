#ifndef RUBATO_SERVER_PULLED_WEIGHTS_H_
#define RUBATO_SERVER_PULLED_WEIGHTS_H_

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/float_buffer.h"
#include "proto/parameter_server.pb.h"

namespace rubato::server {

// The weights of one chunk that each worker computes from, for compensations that compare them with those that its push
// is applied to. They are references to the buffers that were handed out: several workers share one, an update writes
// to another as long as one of them holds it, and with shared memory the worker holds it anyway. Not thread-safe.
//
// A checkpoint has nothing of them: after a restore every worker pulls before it pushes.
class PulledWeights {
 public:
  // The worker was given the chunk's weights, which are at `version`. What it had before it computes with no more.
  void Note(const v1::TaskId& worker, int64_t version, FloatBuffer::Ptr weights);

  // What a push that was computed from `base_version` was computed from, which is forgotten. Null if the worker was
  // last given something else: what it had is not known.
  FloatBuffer::Ptr Take(const v1::TaskId& worker, int64_t base_version);

  void Forget(const v1::TaskId& worker);
  // Forgets whoever is no member of the plan.
  void KeepMembers(const v1::Plan& plan);

  bool empty() const { return entries_.empty(); }

 private:
  // A worker's index and incarnation.
  using Worker = std::pair<uint32_t, uint64_t>;
  struct Entry {
    int64_t version;
    FloatBuffer::Ptr weights;
  };

  absl::flat_hash_map<Worker, Entry> entries_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_PULLED_WEIGHTS_H_
