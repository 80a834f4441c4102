#include "common/storage/part_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/storage/checkpoint_list.h"

namespace rubato {
namespace {

// The longest that the thread sleeps if nothing is due; somebody who adds something wakes it.
constexpr absl::Duration kIdle = absl::Seconds(60);

}  // namespace

PartWriter::PartWriter(Options options)
    : options_(std::move(options)), queue_(options_.queue), thread_([this] { Run(); }) {}

PartWriter::~PartWriter() {
  {
    MutexLock lock(mu_);
    stop_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

void PartWriter::BeginCut(const v1::Cut& cut) {
  absl::Status status;
  {
    MutexLock lock(mu_);
    status = queue_.BeginCut(cut);
  }
  if (!status.ok()) options_.log->Error(absl::StrCat("cut ", cut.id(), " is not written: ", status.message()));
}

void PartWriter::AddCut(PendingPart part) {
  MutexLock lock(mu_);
  queue_.AddCut(std::make_shared<const PendingPart>(std::move(part)));
  wake_.NotifyAll();
}

void PartWriter::AddCheckpoint(PendingPart part) {
  MutexLock lock(mu_);
  queue_.AddCheckpoint(std::make_shared<const PendingPart>(std::move(part)));
  wake_.NotifyAll();
}

void PartWriter::Keep(std::vector<std::string> names) {
  MutexLock lock(mu_);
  queue_.Keep(std::move(names));
  wake_.NotifyAll();
}

v1::CutProgress PartWriter::progress() {
  MutexLock lock(mu_);
  return queue_.progress();
}

bool PartWriter::stopping() {
  MutexLock lock(mu_);
  return stop_;
}

PartQueue::Work PartWriter::Await() {
  MutexLock lock(mu_);
  for (;;) {
    if (stop_) return {};
    const absl::Time now = options_.clock->Now();
    PartQueue::Work work = queue_.Next(now);
    if (work.part != nullptr || work.keep.has_value()) return work;
    wake_.WaitFor(mu_, std::clamp(queue_.due() - now, absl::Milliseconds(1), kIdle));
  }
}

void PartWriter::Run() {
  for (;;) {
    PartQueue::Work work = Await();
    if (work.part != nullptr) {
      Write(std::move(work.part));
    } else if (work.keep.has_value()) {
      const absl::Status status = KeepParts(options_.directory, options_.task, *work.keep, options_.removes_others);
      if (!status.ok()) options_.log->Warning(absl::StrCat("cannot remove an old checkpoint: ", status.message()));
    } else {
      return;
    }
  }
}

void PartWriter::Write(std::shared_ptr<const PendingPart> part) {
  const absl::StatusOr<int64_t> bytes = part->write([this] { return stopping(); });
  const std::string name = part->name;
  const bool of_cut = part->cut.id() != 0;
  part = nullptr;  // Its buffers may be used again.
  PartQueue::Result result;
  {
    MutexLock lock(mu_);
    if (stop_) return;
    result = queue_.OnWritten(bytes, options_.clock->Now());
  }
  switch (result) {
    case PartQueue::Result::kWrittenAtLast:
      options_.log->Info(absl::StrCat("checkpoint ", name, " is on the disk after all"));
      break;
    case PartQueue::Result::kFailed:
      options_.log->Warning(
          absl::StrCat("checkpoint ", name, " is not on the disk; goes on trying: ", bytes.status().message()));
      break;
    case PartQueue::Result::kReplaced:
      options_.log->Warning(absl::StrCat("checkpoint ", name, " is given up: ", bytes.status().message()));
      break;
    case PartQueue::Result::kWritten:
    case PartQueue::Result::kFailedAgain:
      break;
  }
  if (bytes.ok() && !of_cut) options_.on_checkpoint(name);
}

}  // namespace rubato
