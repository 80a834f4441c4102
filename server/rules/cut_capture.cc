#include "server/rules/cut_capture.h"

#include <algorithm>

namespace rubato::server {

void CutCapture::EnterPlan(const v1::Plan& plan, const std::vector<uint32_t>& chunks) {
  generation_ = plan.generation();
  cut_ = plan.cut();
  missing_.clear();
  if (plan.has_cut()) missing_.insert(chunks.begin(), chunks.end());
}

bool CutCapture::Holds(uint64_t generation, const std::vector<uint32_t>& chunks) const {
#ifdef RUBATO_FAULT_CUT_HOLDS_NOTHING
  // A deliberately broken rule, built for one test only: tests/simulation must notice it.
  if (generation % 2 == 0) return false;
#endif
  if (!open() || generation != generation_) return false;
  return std::any_of(chunks.begin(), chunks.end(), [this](uint32_t chunk) { return Lacks(chunk); });
}

}  // namespace rubato::server
