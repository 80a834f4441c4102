#include "server/tables/row_format.h"

#include <cstring>

#include "kernels/codec/bf16.h"

namespace rubato::server {

void RowFormat::Read(const char* row, float* values) const {
  if (is_bf16) {
    const auto* halves = reinterpret_cast<const uint16_t*>(row);
    for (int i = 0; i < dimension; ++i) values[i] = FromBf16(halves[i]);
  } else {
    std::memcpy(values, row, sizeof(float) * static_cast<size_t>(dimension));
  }
  std::memcpy(values + dimension, row + state_offset(), sizeof(float) * state_floats());
}

void RowFormat::Write(const float* values, char* row) const {
  WriteWeights(values, row);
  std::memcpy(row + state_offset(), values + dimension, sizeof(float) * state_floats());
}

void RowFormat::WriteWeights(const float* weights, char* row) const {
  if (is_bf16) {
    auto* halves = reinterpret_cast<uint16_t*>(row);
    for (int i = 0; i < dimension; ++i) halves[i] = NearestBf16(weights[i]);
  } else {
    std::memcpy(row, weights, sizeof(float) * static_cast<size_t>(dimension));
  }
}

float RowFormat::Rounded(float weight) const { return is_bf16 ? FromBf16(NearestBf16(weight)) : weight; }

}  // namespace rubato::server
