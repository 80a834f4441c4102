#include "server/rules/update_mix.h"

#include <algorithm>

#include "common/mutants.h"
#include "server/rules/push_hyperparameters.h"

namespace rubato::server {
namespace {

void TakeHyperparameters(const Contribution& contribution, uint32_t group, UpdateMix* mix) {
  const PushHyperparameters* pushed = contribution.header->hyperparameters.get();
  if (pushed == nullptr) return;
  const v1::OptimizerConfig* own = pushed->Find(group);
  if (own == nullptr) return;
  if (mix->hyperparameters == nullptr) {
    mix->hyperparameters = own;
    return;
  }
  if (!SameHyperparameters(*own, *mix->hyperparameters)) mix->disagreement = true;
  if (RUBATO_MUTANT(kLastHyperparameters)) mix->hyperparameters = own;
}

}  // namespace

UpdateMix MixContributions(const ChunkRules::Update& update, const UpdatedTensor& tensor) {
  uint64_t examples = 0;
  for (const Contribution& contribution : update.contributions) {
    examples += RUBATO_MUTANT(kAbsentCounts) ? std::max<uint64_t>(contribution.examples, 1) : contribution.examples;
  }
  UpdateMix mix;
  mix.has_effect = examples > 0 || (tensor.is_mean && !RUBATO_MUTANT(kMeanOfNothingKeeps));
  if (!mix.has_effect) return mix;
  for (const Contribution& contribution : update.contributions) {
    TakeHyperparameters(contribution, tensor.group, &mix);
    if (contribution.examples == 0) continue;
    mix.parts.push_back({&contribution, static_cast<double>(contribution.examples) / static_cast<double>(examples)});
  }
  if (mix.hyperparameters == nullptr && !mix.parts.empty() && !RUBATO_MUTANT(kFewAtFullRate)) {
    mix.share_with_examples = static_cast<double>(mix.parts.size()) / static_cast<double>(update.contributions.size());
  }
  if (RUBATO_MUTANT(kDisagreementUnnoticed)) mix.disagreement = false;
  return mix;
}

}  // namespace rubato::server
