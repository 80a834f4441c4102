#include "worker/training/cut_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"

namespace rubato::worker {

CutWriter::CutWriter(Options options) : options_(std::move(options)), retry_pause_(options_.retry_min) {}

CutWriter::~CutWriter() {
  std::thread thread;
  {
    MutexLock lock(mu_);
    stop_ = true;
    wake_.NotifyAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void CutWriter::Take(const v1::Plan& plan, std::vector<v1::ShardPosition> shards, WorkerPart part) {
  v1::CutProgress progress;
  progress.set_id(plan.cut().id());
  progress.set_entered(true);
  for (v1::ShardPosition& position : shards) *progress.add_shards() = std::move(position);
  const absl::Status named = CheckCutName(plan.cut().name());
  if (!named.ok()) {
    options_.log->Warning(named.message());
    progress.set_problem(std::string(named.message()));
  } else if (part.empty()) {
    progress.set_written(true);
  }
  MutexLock lock(mu_);
  progress_ = std::move(progress);
  pending_.reset();
  if (!named.ok()) return;
  last_name_ = plan.cut().name();
  if (progress_.written()) return;
  pending_ = Pending{plan, std::move(part)};
  retry_at_ = absl::InfinitePast();
  retry_pause_ = options_.retry_min;
  StartThread();
}

void CutWriter::Keep(const v1::KeepCheckpoints& keep) {
  MutexLock lock(mu_);
  keep_ = keep;
  StartThread();
}

v1::CutProgress CutWriter::progress() {
  MutexLock lock(mu_);
  return progress_;
}

std::string CutWriter::last_name() {
  MutexLock lock(mu_);
  return last_name_;
}

void CutWriter::StartThread() {
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  wake_.NotifyAll();
}

void CutWriter::Run() {
  std::optional<Pending> pending;
  std::optional<v1::KeepCheckpoints> keep;
  while (AwaitWork(&pending, &keep)) {
    if (keep.has_value()) {
      if (const absl::Status status = Remove(*keep); !status.ok()) options_.log->Warning(status.message());
    }
    if (!pending.has_value()) continue;
    int64_t bytes = 0;
    if (const absl::Status status = Write(*pending, &bytes); status.ok()) {
      OnWritten(bytes, pending->plan.cut());
    } else {
      OnFailed(status, *std::move(pending));
    }
    pending.reset();
  }
}

bool CutWriter::AwaitWork(std::optional<Pending>* pending, std::optional<v1::KeepCheckpoints>* keep) {
  constexpr absl::Duration kLongestWait = absl::Milliseconds(100);
  MutexLock lock(mu_);
  for (;;) {
    if (stop_) return false;
    const absl::Duration left = retry_at_ - options_.clock->Now();
    const bool due = pending_.has_value() && left <= absl::ZeroDuration();
    if (due || keep_.has_value()) {
      *keep = std::exchange(keep_, std::nullopt);
      if (due) *pending = std::exchange(pending_, std::nullopt);
      return true;
    }
    if (pending_.has_value()) {
      wake_.WaitFor(mu_, std::min(left, kLongestWait));
    } else {
      wake_.Wait(mu_);
    }
  }
}

absl::Status CutWriter::Write(const Pending& pending, int64_t* bytes) {
  v1::CheckpointManifest manifest;
  manifest.set_job_name(options_.job_name);
  manifest.set_servers(options_.servers);
  *manifest.mutable_plan() = pending.plan;
  *manifest.mutable_cut() = pending.plan.cut();
  const std::string directory = JoinPath(options_.directory, pending.plan.cut().name());
  RUBATO_RETURN_IF_ERROR(WriteWorkerPart(directory, options_.task, pending.part, std::move(manifest)));
  const std::string name = JoinPath(directory, CheckpointPartName(options_.task.role(), options_.task.index()));
  for (absl::string_view suffix : {".data", ".manifest"}) {
    RUBATO_ASSIGN_OR_RETURN(const uint64_t size, FileBytes(absl::StrCat(name, suffix)));
    *bytes += static_cast<int64_t>(size);
  }
  return absl::OkStatus();
}

void CutWriter::OnWritten(int64_t bytes, const v1::Cut& cut) {
  MutexLock lock(mu_);
  if (progress_.id() != cut.id()) return;
  progress_.set_written(true);
  progress_.set_bytes(bytes);
  progress_.clear_problem();
}

void CutWriter::OnFailed(const absl::Status& status, Pending pending) {
  bool first = false;
  {
    MutexLock lock(mu_);
    if (progress_.id() != pending.plan.cut().id()) return;
    first = progress_.problem().empty();
    progress_.set_problem(std::string(status.message()));
    pending_ = std::move(pending);
    retry_at_ = options_.clock->Now() + retry_pause_;
    retry_pause_ = std::min(2 * retry_pause_, options_.retry_max);
  }
  if (first) {
    options_.log->Warning(
        absl::StrCat("its part of a checkpoint is not written yet, and tried again: ", status.message()));
  }
}

absl::Status CutWriter::Remove(const v1::KeepCheckpoints& keep) {
  if (!FileExists(options_.directory)) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(options_.directory));
  const std::string part = CheckpointPartName(options_.task.role(), options_.task.index());
  for (const std::string& name : names) {
    const bool kept = std::find(keep.names().begin(), keep.names().end(), name) != keep.names().end();
    if (StepOfCheckpoint(name) < 0 || kept || name == last_name()) continue;
    const std::string path = JoinPath(JoinPath(options_.directory, name), part);
    // What vouches for the data goes before it.
    for (absl::string_view suffix : {".manifest", ".data", ".data.tmp", ".manifest.tmp"}) {
      RUBATO_RETURN_IF_ERROR(RemoveFile(absl::StrCat(path, suffix)));
    }
  }
  return absl::OkStatus();
}

}  // namespace rubato::worker
