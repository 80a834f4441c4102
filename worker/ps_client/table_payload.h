#ifndef RUBATO_WORKER_PS_CLIENT_TABLE_PAYLOAD_H_
#define RUBATO_WORKER_PS_CLIENT_TABLE_PAYLOAD_H_

#include <cstddef>
#include <cstdint>

#include "worker/ps_client/table_parts.h"

namespace rubato::worker {

// What a message pushes to a table, or asks of it: keys, and behind them their gradients, encoded by the table's
// `push`, if they are pushed. Pure.
//
//   const auto payload = std::make_unique_for_overwrite<uint64_t[]>(PayloadBytes(table, part, true) / 8 + 1);
//   WritePayload(table, part, keys.data(), gradients.data(), payload.get());
size_t PayloadBytes(const TableParts& table, const KeyPart& part, bool with_gradients);

// Writes the part's bytes. `keys` and `gradients`, `dimension` floats for each, are those of all parts; gradients are
// null if keys are asked for.
void WritePayload(const TableParts& table, const KeyPart& part, const uint64_t* keys, const float* gradients,
                  uint64_t* out);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_TABLE_PAYLOAD_H_
