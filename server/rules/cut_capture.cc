#include "server/rules/cut_capture.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/mutants.h"

namespace rubato::server {

void CutCapture::EnterPlan(const v1::Plan& plan, const std::vector<uint32_t>& chunks) {
  generation_ = plan.generation();
  cut_ = plan.cut();
  missing_.clear();
  if (plan.has_cut()) missing_.insert(chunks.begin(), chunks.end());
}

bool CutCapture::Holds(uint64_t generation, const std::vector<uint32_t>& chunks) const {
  if (RUBATO_MUTANT(kCutHoldsNothing)) return false;
  if (!open() || generation != generation_) return false;
  return std::any_of(chunks.begin(), chunks.end(), [this](uint32_t chunk) { return Lacks(chunk); });
}

void CutCapture::AppendState(std::string* state) const {
  std::vector<uint32_t> missing(missing_.begin(), missing_.end());
  std::sort(missing.begin(), missing.end());
  absl::StrAppend(state, generation_, ",", cut_.SerializeAsString(), ",", absl::StrJoin(missing, ","), ";");
}

}  // namespace rubato::server
