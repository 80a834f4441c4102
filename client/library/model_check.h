#ifndef RUBATO_CLIENT_LIBRARY_MODEL_CHECK_H_
#define RUBATO_CLIENT_LIBRARY_MODEL_CHECK_H_

#include <cstdint>
#include <string>

#include "client/link/model.h"
#include "client/rubato_client.h"

namespace rubato::client {

// What is wrong with a model, or with the values of one group, naming the field and what is allowed; empty: nothing.
// What the coordinator knows better (how many tensors there may be, say) is left to it. Pure.
std::string ReadModel(const rubato_model& given, Model* model);
std::string CheckHyperparameters(uint32_t group, const Hyperparameters& values, rubato_algorithm algorithm);

Hyperparameters ReadHyperparameters(const rubato_hyperparameters& given);

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LIBRARY_MODEL_CHECK_H_
