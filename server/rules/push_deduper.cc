#include "server/rules/push_deduper.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/mutants.h"

namespace rubato::server {

bool PushDeduper::Seen(uint32_t worker, uint64_t incarnation, int64_t step) const {
  if (RUBATO_MUTANT(kDeduperForgets)) return step < LastStep(worker, incarnation);
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

void PushDeduper::AppendState(std::string* state) const {
  std::vector<std::string> marks;
  for (const Watermark& mark : watermarks_) {
    marks.push_back(absl::StrCat(mark.worker, "#", mark.incarnation, ",", mark.step));
  }
  // Their order says only who came first.
  std::sort(marks.begin(), marks.end());
  absl::StrAppend(state, absl::StrJoin(marks, ";"), ";");
}

}  // namespace rubato::server
