#include "cli/launch/card_turns.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rubato {

bool TakesTurns(const v1::TrainingConfig& training) {
  return training.device() != v1::TrainingConfig::CPU && !training.has_device_index();
}

std::optional<uint32_t> CardInTurn(const v1::TrainingConfig& training, uint32_t cards, uint32_t turn) {
  if (!TakesTurns(training) || cards < 2) return std::nullopt;
  const uint32_t each = std::max(1u, training.cards());
  return turn % std::max(1u, cards / each) * each;
}

std::string CardProblem(uint32_t found, uint32_t needed) {
  if (found >= needed) return "";
  if (found == 0) return "it has no card, and training.device is CUDA";
  return absl::StrCat("it has ", found, " of the ", needed, " cards that training.cards takes");
}

}  // namespace rubato
