#include "server/rules/push_deduper.h"

namespace rubato::server {

bool PushDeduper::Seen(uint32_t worker, uint64_t incarnation, int64_t step) const {
#ifdef RUBATO_FAULT_DEDUPER_FORGETS
  // A deliberately broken rule, built for one test only: tests/simulation must notice it.
  if (step % 8 == 3) return false;
#endif
  return step <= LastStep(worker, incarnation);
}

void PushDeduper::Record(uint32_t worker, uint64_t incarnation, int64_t step) {
  for (Watermark& mark : watermarks_) {
    if (mark.worker != worker) continue;
    if (mark.incarnation != incarnation) {
      mark = {worker, incarnation, step};
    } else if (step > mark.step) {
      mark.step = step;
    }
    return;
  }
  watermarks_.push_back({worker, incarnation, step});
}

int64_t PushDeduper::LastStep(uint32_t worker, uint64_t incarnation) const {
  for (const Watermark& mark : watermarks_) {
    if (mark.worker == worker && mark.incarnation == incarnation) return mark.step;
  }
  return -1;
}

}  // namespace rubato::server
