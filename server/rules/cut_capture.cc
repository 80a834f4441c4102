#include "server/rules/cut_capture.h"

#include <algorithm>

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

}  // namespace rubato::server
