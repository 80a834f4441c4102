#ifndef RUBATO_SERVER_TABLES_ROW_FORMAT_H_
#define RUBATO_SERVER_TABLES_ROW_FORMAT_H_

#include <cstddef>
#include <cstdint>

#include "server/tables/row_rule.h"

namespace rubato::server {

// What a row's weights are kept as: float, or uint16_t for the upper half of one, bf16.
template <typename Weight>
constexpr size_t StateOffset(int dimension) {
  constexpr size_t kFloat = sizeof(float);
  return (sizeof(Weight) * static_cast<size_t>(dimension) + kFloat - 1) / kFloat * kFloat;
}

// A row in memory: the weights, then, at a multiple of 4 bytes, the float32 of what the formula keeps (StateSize).
struct RowFormat {
  int dimension = 0;
  RowFormula formula = RowFormula::kSgd;
  bool is_bf16 = false;

  size_t state_offset() const { return is_bf16 ? StateOffset<uint16_t>(dimension) : StateOffset<float>(dimension); }
  size_t bytes() const { return state_offset() + sizeof(float) * state_floats(); }
  size_t state_floats() const { return static_cast<size_t>(StateSize(formula, dimension)); }
  // As whoever is outside of the table sees a row: weights and state, all float32.
  size_t floats() const { return static_cast<size_t>(dimension) + state_floats(); }

  // Between memory and `floats()` float32. Weights are rounded to the nearest bf16; what Read gave is kept as it was.
  void Read(const char* row, float* values) const;
  void Write(const float* values, char* row) const;
  // The same of weights alone. `row` and `values` may be of any contents before.
  void WriteWeights(const float* weights, char* row) const;
  // What a weight that is written reads as.
  float Rounded(float weight) const;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_TABLES_ROW_FORMAT_H_
