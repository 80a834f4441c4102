#ifndef RUBATO_COMMON_PART_COPIES_PART_PEERS_H_
#define RUBATO_COMMON_PART_COPIES_PART_PEERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/security/task_security.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "proto/part_copies.grpc.pb.h"

namespace rubato {

// The servers that keep copies of a task's parts, `count` of them if there are as many: on hosts other than the task's
// own, and each other's, as far as there are such, and from the task's index on, so that the load is even. Of a server
// it is never itself; a worker's host is not known.
std::vector<v1::ServerInfo> ServersForCopies(const std::vector<v1::ServerInfo>& servers, const v1::TaskId& task,
                                             size_t count);

// Copies of parts of checkpoints on the disks of other servers (checkpoint.copies): brings this task's there, and
// others' from there. Thread-safe; calls block for as long as disks and network do, and end soon after `cancelled` says
// yes, with Cancelled.
class PartPeers {
 public:
  using Cancelled = std::function<bool()>;

  struct Options {
    // That of all checkpoints.
    std::string directory;
    v1::TaskId task;
    uint64_t job_fingerprint = 0;
    // All of the job, this one perhaps as well.
    std::vector<v1::ServerInfo> servers;
    // How many others keep this task's parts.
    size_t count = 0;
    // How it proves that it belongs to the job, and whom it believes to. Null: it does not, and everybody.
    std::shared_ptr<const TaskSecurity> security = nullptr;
    // How long Fetch waits for a server that does not answer.
    absl::Duration timeout = absl::Seconds(60);
    // Both outlive it.
    Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  explicit PartPeers(Options options);
  ~PartPeers();

  // Returns when each of ServersForCopies has this task's part, which is in the directory, on its disk. Errors name the
  // server, and are those of PartCopies.Write, or of reading the part.
  absl::Status Send(const std::string& checkpoint, uint64_t cut_id, const Cancelled& cancelled) const;

  // Brings a part into the directory, from whichever server has it, unless `wanted` says no to its manifest. NotFound:
  // no server has it. Unavailable: no server that answers has it. Errors of the disk are its own.
  absl::Status Fetch(const std::string& checkpoint, uint64_t cut_id, v1::TaskId::Role role, uint32_t index,
                     const std::function<bool(const v1::CheckpointManifest&)>& wanted,
                     const Cancelled& cancelled) const;

 private:
  struct Peer {
    v1::ServerInfo server;
    std::unique_ptr<v1::PartCopies::Stub> stub;
  };

  absl::Status SendTo(const Peer& peer, const v1::PartName& part, const Cancelled& cancelled) const;
  absl::Status FetchFrom(const Peer& peer, const v1::PartName& part,
                         const std::function<bool(const v1::CheckpointManifest&)>& wanted,
                         const Cancelled& cancelled) const;
  absl::StatusOr<v1::ReadPartReply> ReadFrom(const Peer& peer, const v1::PartName& part, uint64_t offset,
                                             uint32_t bytes, const Cancelled& cancelled) const;
  v1::PartName NameOf(const std::string& checkpoint, uint64_t cut_id, v1::TaskId::Role role, uint32_t index) const;

  const Options options_;
  // All but this task.
  std::vector<Peer> peers_;
  // Into peers_.
  std::vector<size_t> holders_;
};

// As a job's task has them: null if checkpoint.copies is 1. A worker's part is kept by as many servers, because its own
// host may be the same.
std::shared_ptr<const PartPeers> MakePartPeers(const v1::JobConfig& config, const v1::JobDescription& job,
                                               const v1::TaskId& task, std::shared_ptr<const TaskSecurity> security,
                                               Clock* clock, Logger* log);

}  // namespace rubato

#endif  // RUBATO_COMMON_PART_COPIES_PART_PEERS_H_
