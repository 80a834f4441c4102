#include "server/rules/push_deduper.h"

#include "absl/strings/str_cat.h"
#include "common/mutants.h"

namespace rubato::server {

bool PushDeduper::Seen(uint32_t worker, uint64_t incarnation, int64_t step) const {
  if (RUBATO_MUTANT(kDeduperForgets)) return step < LastStep(worker, incarnation);
  return step <= LastStep(worker, incarnation);
}

void PushDeduper::Record(uint32_t worker, uint64_t incarnation, int64_t step, int64_t applied_to) {
  WorkerOnChunk::Done& done = workers_.Of(worker).done;
  if (done.incarnation != incarnation || step > done.step) done = {incarnation, step, applied_to};
}

const WorkerOnChunk::Done* PushDeduper::Find(uint32_t worker, uint64_t incarnation) const {
  const WorkerOnChunk* const known = workers_.Find(worker);
  return known != nullptr && known->done.incarnation == incarnation ? &known->done : nullptr;
}

int64_t PushDeduper::LastStep(uint32_t worker, uint64_t incarnation) const {
  const WorkerOnChunk::Done* const done = Find(worker, incarnation);
  return done == nullptr ? -1 : done->step;
}

int64_t PushDeduper::AppliedTo(uint32_t worker, uint64_t incarnation, int64_t step) const {
  const WorkerOnChunk::Done* const done = Find(worker, incarnation);
  return done == nullptr || done->step != step ? -1 : done->applied_to;
}

std::vector<PushDeduper::Watermark> PushDeduper::Watermarks() const {
  std::vector<Watermark> marks;
  for (uint32_t worker = 0; worker < workers_.end(); ++worker) {
    const WorkerOnChunk* const known = workers_.Find(worker);
    if (known == nullptr || known->done.step < 0) continue;
    marks.push_back({worker, known->done.incarnation, known->done.step});
  }
  return marks;
}

void PushDeduper::AppendState(std::string* state) const {
  for (const Watermark& mark : Watermarks()) {
    absl::StrAppend(state, mark.worker, "#", mark.incarnation, ",", mark.step, ";");
  }
  absl::StrAppend(state, ";");
}

}  // namespace rubato::server
