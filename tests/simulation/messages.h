#ifndef RUBATO_TESTS_SIMULATION_MESSAGES_H_
#define RUBATO_TESTS_SIMULATION_MESSAGES_H_

#include <cstdint>
#include <vector>

#include "proto/parameter_server.pb.h"
#include "proto/update_log.pb.h"
#include "server/rules/partition.h"
#include "worker/ps_client/step_machine.h"

namespace rubato::simulation {

// What a worker's step machine asks for, of these chunks, as a partition gets it. A push has so many examples for each
// chunk, and no base versions; `push` is what else it says.
server::PartitionRequest ToPartitionRequest(const worker::StepMachine::Request& request, const v1::TaskId& task,
                                            const std::vector<uint32_t>& chunks, uint64_t examples,
                                            server::PushHeader push = {});

// Without its chunks.
v1::ExchangeReply ToWire(const server::PartitionReply& reply);

// As the update log has it.
v1::UpdateRecord ToRecord(uint32_t chunk, const server::Contribution& contribution);

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_MESSAGES_H_
