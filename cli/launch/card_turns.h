#ifndef RUBATO_CLI_LAUNCH_CARD_TURNS_H_
#define RUBATO_CLI_LAUNCH_CARD_TURNS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "proto/job_config.pb.h"

namespace rubato {

// Whether tasks take turns with a machine's cards: unless they compute on the CPU, or the config says which card.
bool TakesTurns(const v1::TrainingConfig& training);

// training.device_index of the task whose turn it is, counted from 0, on a machine with so many cards: tasks take turns
// with groups of training.cards of them. Nothing where the config's own holds: they do not take turns, or there are not
// two cards.
std::optional<uint32_t> CardInTurn(const v1::TrainingConfig& training, uint32_t cards, uint32_t turn);

// What is wrong with a machine that has `found` cards, where training.device is CUDA and its tasks take `needed`;
// empty: nothing.
std::string CardProblem(uint32_t found, uint32_t needed);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_CARD_TURNS_H_
