#include "server/rules/push_deduper.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "server/rules/by_worker.h"

namespace rubato::server {
namespace {

uint32_t WorkerOf(const PushDeduper::Watermark& mark) { return mark.worker; }

}  // namespace

bool PushDeduper::Seen(uint32_t worker, uint64_t incarnation, int64_t step) const {
  if (RUBATO_MUTANT(kDeduperForgets)) return step < LastStep(worker, incarnation);
  return step <= LastStep(worker, incarnation);
}

void PushDeduper::Record(uint32_t worker, uint64_t incarnation, int64_t step, int64_t applied_to) {
  const size_t at = LowerBoundByWorker(watermarks_, worker, WorkerOf);
  if (at == watermarks_.size() || watermarks_[at].worker != worker) {
    watermarks_.insert(watermarks_.begin() + static_cast<std::ptrdiff_t>(at), {worker, incarnation, step, applied_to});
    return;
  }
  Watermark& mark = watermarks_[at];
  if (mark.incarnation != incarnation || step > mark.step) mark = {worker, incarnation, step, applied_to};
}

const PushDeduper::Watermark* PushDeduper::Find(uint32_t worker, uint64_t incarnation) const {
  const size_t at = FindByWorker(watermarks_, worker, WorkerOf);
  return at < watermarks_.size() && watermarks_[at].incarnation == incarnation ? &watermarks_[at] : nullptr;
}

int64_t PushDeduper::LastStep(uint32_t worker, uint64_t incarnation) const {
  const Watermark* const mark = Find(worker, incarnation);
  return mark == nullptr ? -1 : mark->step;
}

int64_t PushDeduper::AppliedTo(uint32_t worker, uint64_t incarnation, int64_t step) const {
  const Watermark* const mark = Find(worker, incarnation);
  return mark == nullptr || mark->step != step ? -1 : mark->applied_to;
}

void PushDeduper::AppendState(std::string* state) const {
  for (const Watermark& mark : watermarks_) {
    absl::StrAppend(state, mark.worker, "#", mark.incarnation, ",", mark.step, ";");
  }
  absl::StrAppend(state, ";");
}

}  // namespace rubato::server
