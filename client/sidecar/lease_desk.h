#ifndef RUBATO_CLIENT_SIDECAR_LEASE_DESK_H_
#define RUBATO_CLIENT_SIDECAR_LEASE_DESK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "client/link/frame.h"
#include "client/sidecar/lease_keeper.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "proto/coordinator.pb.h"

namespace rubato::client {

// A LeaseKeeper with the thread that asks the coordinator and answers the client. Thread-safe.
class LeaseDesk {
 public:
  struct Options {
    // Sends to the coordinator; a message may be lost.
    std::function<void(const v1::ShardRequest&)> send;
    // The answer to the client's request: a lease, or nothing, because the data is used up. On the desk's thread.
    std::function<void(uint32_t request, std::optional<LeaseBody>)> answer;
    // The client does not know yet that its leases from before are void: it gets none until Release.
    bool hold = false;
    const Clock* clock = nullptr;
  };

  explicit LeaseDesk(Options options);
  // No callback runs afterwards.
  ~LeaseDesk();
  LeaseDesk(const LeaseDesk&) = delete;
  LeaseDesk& operator=(const LeaseDesk&) = delete;

  void Want(uint32_t request);
  void Release();
  void OnGrant(const v1::ShardGrant& grant);

  // As LeaseKeeper. Stopped sends.
  void SetSlice(const SliceBody& slice);
  void Acknowledged();
  void Stopped();
  std::vector<v1::ShardPosition> Positions();

 private:
  void Run();
  // The answer that is due now, if there is one.
  bool TakeAnswer(uint32_t* request, std::optional<LeaseBody>* lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  Mutex mu_;
  CondVar changed_;
  LeaseKeeper leases_ ABSL_GUARDED_BY(mu_);
  uint32_t request_ ABSL_GUARDED_BY(mu_) = 0;
  bool hold_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_LEASE_DESK_H_
