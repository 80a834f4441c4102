#include "worker/ps_client/cut_writer.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"

namespace rubato::worker {

CutWriter::CutWriter(Options options)
    : options_(std::move(options)),
      writer_({.directory = options_.directory,
               .task = options_.task,
               .queue = options_.queue,
               .clock = options_.clock,
               .log = options_.log}) {}

void CutWriter::SetPeers(std::shared_ptr<const PartPeers> peers) {
  MutexLock lock(mu_);
  peers_ = std::move(peers);
}

void CutWriter::Take(const v1::Plan& plan, std::vector<v1::ShardPosition> shards, WorkerPart part) {
  std::shared_ptr<const PartPeers> peers;
  {
    MutexLock lock(mu_);
    peers = peers_;
    entered_.Clear();
    entered_.set_id(plan.cut().id());
    entered_.set_entered(true);
    for (v1::ShardPosition& position : shards) *entered_.add_shards() = std::move(position);
  }
  PendingPart pending{.name = plan.cut().name(), .cut = plan.cut()};
  if (!part.empty()) {
    pending.write = [this, plan, peers, kept = std::make_shared<const WorkerPart>(std::move(part))](
                        const std::function<bool()>& cancelled) -> absl::StatusOr<int64_t> {
      RUBATO_ASSIGN_OR_RETURN(const int64_t bytes, Write(plan, *kept));
      if (peers != nullptr) RUBATO_RETURN_IF_ERROR(peers->Send(plan.cut().name(), plan.cut().id(), cancelled));
      return bytes;
    };
  }
  writer_.BeginCut(plan.cut());
  writer_.AddCut(std::move(pending));
}

void CutWriter::Keep(const v1::KeepCheckpoints& keep) { writer_.Keep({keep.names().begin(), keep.names().end()}); }

v1::CutProgress CutWriter::progress() {
  v1::CutProgress progress = writer_.progress();
  MutexLock lock(mu_);
  // Between the two a newer one may have begun.
  if (progress.id() != entered_.id()) return entered_;
  progress.MergeFrom(entered_);
  return progress;
}

absl::StatusOr<int64_t> CutWriter::Write(const v1::Plan& plan, const WorkerPart& part) const {
  v1::CheckpointManifest manifest;
  manifest.set_job_name(options_.job_name);
  manifest.set_servers(options_.servers);
  *manifest.mutable_plan() = plan;
  *manifest.mutable_cut() = plan.cut();
  const std::string directory = JoinPath(options_.directory, plan.cut().name());
  RUBATO_RETURN_IF_ERROR(WriteWorkerPart(directory, options_.task, part, std::move(manifest)));
  const std::string name = JoinPath(directory, CheckpointPartName(options_.task.role(), options_.task.index()));
  int64_t bytes = 0;
  for (absl::string_view suffix : {".data", ".manifest"}) {
    RUBATO_ASSIGN_OR_RETURN(const uint64_t size, FileBytes(absl::StrCat(name, suffix)));
    bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

}  // namespace rubato::worker
