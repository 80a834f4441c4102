#include "worker/ps_client/table_payload.h"

#include "kernels/codec/codec.h"

namespace rubato::worker {

size_t PayloadBytes(const TableParts& table, const KeyPart& part, bool with_gradients) {
  const size_t row_bytes = with_gradients ? static_cast<size_t>(MaxEncodedBytes({table.push}, table.dimension)) : 0;
  return part.count * (sizeof(uint64_t) + row_bytes);
}

void WritePayload(const TableParts& table, const KeyPart& part, const uint64_t* keys, const float* gradients,
                  uint64_t* out) {
  part.Gather(keys, sizeof(uint64_t), out);
  if (gradients == nullptr) return;
  auto* to = reinterpret_cast<uint8_t*>(out + part.count);
  for (const KeyPart::Run& run : part.runs) {
    to += Encode({table.push}, gradients + static_cast<int64_t>(run.begin) * table.dimension,
                 static_cast<int64_t>(run.count) * table.dimension, /*residual=*/nullptr, /*seed=*/0, /*stream=*/0, to);
  }
}

}  // namespace rubato::worker
