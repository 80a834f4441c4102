#ifndef RUBATO_TESTS_SIMULATION_ROW_MESSAGE_H_
#define RUBATO_TESTS_SIMULATION_ROW_MESSAGE_H_

#include <string>

#include "proto/parameter_server.pb.h"

namespace rubato::simulation {

// What a message says of rows of the job's table, as it is on the wire.
struct RowMessage {
  v1::TableKeys keys;
  std::string payload;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_ROW_MESSAGE_H_
