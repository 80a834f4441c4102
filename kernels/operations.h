#ifndef RUBATO_KERNELS_OPERATIONS_H_
#define RUBATO_KERNELS_OPERATIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/backend.h"

// Each operation of a device, declared with the name and the parameters of Backend's method. An interface ends the
// declarations with `= 0`, what implements it with `override`.
#define RUBATO_DECLARE_OPERATIONS(end)                                                                                 \
  virtual absl::Status Fill(float value, const DeviceTensor& y) end;                                                   \
  virtual absl::Status Copy(const DeviceTensor& x, const DeviceTensor& y) end;                                         \
  virtual absl::Status Add(const DeviceTensor& a, const DeviceTensor& b, const DeviceTensor& y) end;                   \
  virtual absl::Status Multiply(const DeviceTensor& a, const DeviceTensor& b, bool accumulate, const DeviceTensor& y)  \
      end;                                                                                                             \
  virtual absl::Status CopyColumns(const ColumnRange& range, bool accumulate, const DeviceTensor& x,                   \
                                   const DeviceTensor& y) end;                                                         \
  virtual absl::Status Axpy(float alpha, const DeviceTensor& x, const DeviceTensor& y) end;                            \
  virtual absl::Status Scale(float factor, const DeviceTensor& y) end;                                                 \
  virtual absl::Status SumOfSquares(const DeviceTensor& x, bool accumulate, const DeviceTensor& sum) end;              \
  virtual absl::Status ScaleToNorm(float max_norm, const DeviceTensor& sum_of_squares, const DeviceTensor& y) end;     \
  virtual absl::Status Gemm(bool transpose_a, bool transpose_b, float alpha, const DeviceTensor& a,                    \
                            const DeviceTensor& b, float beta, const DeviceTensor& c) end;                             \
  virtual absl::Status Linear(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& bias,             \
                              const DeviceTensor& y) end;                                                              \
  virtual absl::Status LinearBackward(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& dy,       \
                                      bool accumulate, const DeviceTensor& dx, const DeviceTensor& dweight,            \
                                      const DeviceTensor& dbias) end;                                                  \
  virtual absl::Status LinearUnits(const UnitRange& units, const DeviceTensor& x, const DeviceTensor& weight,          \
                                   const DeviceTensor& y) end;                                                         \
  virtual absl::Status LinearUnitsGradient(const UnitRange& units, const DeviceTensor& x, const DeviceTensor& dy,      \
                                           bool accumulate, const DeviceTensor& dweight) end;                          \
  virtual absl::Status AddBias(const DeviceTensor& bias, const DeviceTensor& y) end;                                   \
  virtual absl::Status BiasGradient(const DeviceTensor& dy, bool accumulate, const DeviceTensor& dbias) end;           \
  virtual absl::Status Conv2d(const Conv2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& weight,       \
                              const DeviceTensor& y) end;                                                              \
  virtual absl::Status Conv2dBackwardData(const Conv2dGeometry& geometry, const DeviceTensor& dy,                      \
                                          const DeviceTensor& weight, const DeviceTensor& dx) end;                     \
  virtual absl::Status Conv2dBackwardWeight(const Conv2dGeometry& geometry, const DeviceTensor& x,                     \
                                            const DeviceTensor& dy, bool accumulate, const DeviceTensor& dweight) end; \
  virtual absl::Status MaxPool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y,         \
                                 const DeviceTensor& argmax) end;                                                      \
  virtual absl::Status MaxPool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,                       \
                                         const DeviceTensor& argmax, const DeviceTensor& dx) end;                      \
  virtual absl::Status AveragePool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y)     \
      end;                                                                                                             \
  virtual absl::Status AveragePool2dBackward(const Pool2dGeometry& geometry, const DeviceTensor& dy,                   \
                                             const DeviceTensor& dx) end;                                              \
  virtual absl::Status Activate(Activation activation, const DeviceTensor& x, const DeviceTensor& y) end;              \
  virtual absl::Status ActivateBackward(Activation activation, const DeviceTensor& x, const DeviceTensor& y,           \
                                        const DeviceTensor& dy, const DeviceTensor& dx) end;                           \
  virtual absl::Status Dropout(const DropoutMask& mask, const DeviceTensor& x, const DeviceTensor& y) end;             \
  virtual absl::Status LayerNorm(float epsilon, const DeviceTensor& x, const DeviceTensor& gain,                       \
                                 const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,            \
                                 const DeviceTensor& inverse_deviation) end;                                           \
  virtual absl::Status LayerNormBackward(const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& mean,    \
                                         const DeviceTensor& inverse_deviation, const DeviceTensor& dy,                \
                                         bool accumulate, bool add_to_dx, const DeviceTensor& dx,                      \
                                         const DeviceTensor& dgain, const DeviceTensor& dbias) end;                    \
  virtual absl::Status GroupNorm(int64_t groups, float epsilon, const DeviceTensor& x, const DeviceTensor& gain,       \
                                 const DeviceTensor& bias, const DeviceTensor& y, const DeviceTensor& mean,            \
                                 const DeviceTensor& inverse_deviation) end;                                           \
  virtual absl::Status GroupNormBackward(int64_t groups, const DeviceTensor& x, const DeviceTensor& gain,              \
                                         const DeviceTensor& mean, const DeviceTensor& inverse_deviation,              \
                                         const DeviceTensor& dy, bool accumulate, const DeviceTensor& dx,              \
                                         const DeviceTensor& dgain, const DeviceTensor& dbias) end;                    \
  virtual absl::Status DotInteraction(int64_t width, const DeviceTensor& x, const DeviceTensor& y) end;                \
  virtual absl::Status DotInteractionBackward(int64_t width, const DeviceTensor& x, const DeviceTensor& dy,            \
                                              const DeviceTensor& dx) end;                                             \
  virtual absl::Status FactorizationMachine(int64_t width, const DeviceTensor& x, const DeviceTensor& y) end;          \
  virtual absl::Status FactorizationMachineBackward(int64_t width, const DeviceTensor& x, const DeviceTensor& dy,      \
                                                    const DeviceTensor& dx) end;                                       \
  virtual absl::Status Embed(const DeviceTensor& table, const DeviceTensor& indices, const DeviceTensor& y) end;       \
  virtual absl::Status EmbedBackward(const DeviceTensor& indices, const DeviceTensor& dy, bool accumulate,             \
                                     const DeviceTensor& dtable) end;                                                  \
  virtual absl::Status CausalAttention(const AttentionGeometry& geometry, const DeviceTensor& qkv,                     \
                                       const DeviceTensor& y, const DeviceTensor& log_sum_exp) end;                    \
  virtual absl::Status CausalAttentionBackward(const AttentionGeometry& geometry, const DeviceTensor& qkv,             \
                                               const DeviceTensor& y, const DeviceTensor& log_sum_exp,                 \
                                               const DeviceTensor& dy, const DeviceTensor& dqkv) end;                  \
  virtual absl::Status SoftmaxCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes,                    \
                                           float gradient_scale, const DeviceTensor& dlogits,                          \
                                           const DeviceTensor& sums) end;                                              \
  virtual absl::Status BinaryCrossEntropy(const DeviceTensor& logits, const DeviceTensor& classes,                     \
                                          float gradient_scale, const DeviceTensor& dlogits, const DeviceTensor& sums) \
      end;                                                                                                             \
  virtual absl::Status MeanSquaredError(const DeviceTensor& outputs, const DeviceTensor& targets,                      \
                                        float gradient_scale, const DeviceTensor& doutputs, const DeviceTensor& sums)  \
      end;                                                                                                             \
  virtual absl::Status ApplyUpdate(const UpdateRule& rule, const DeviceTensor& gradient, const DeviceTensor& weights,  \
                                   const DeviceTensor& first_slot, const DeviceTensor& second_slot) end;               \
  virtual absl::Status Encode(const EncodedRange& range, const DeviceTensor& values, const DeviceTensor& residual,     \
                              const DeviceTensor& encoded) end;

namespace rubato {

// The sizes of a product, c [m, n] = op(a) [m, k] op(b) [k, n].
struct GemmSizes {
  GemmSizes(bool transpose_a, bool transpose_b, const DeviceTensor& a, const DeviceTensor& b)
      : m(transpose_a ? a.columns() : a.rows()),
        n(transpose_b ? b.rows() : b.columns()),
        k(transpose_a ? a.rows() : a.columns()) {}

  const int64_t m, n, k;
};

// Elements of a channel in one example of [n, channels, ...].
inline int64_t ChannelElements(const DeviceTensor& tensor) {
  const int64_t channels = tensor.shape()[1];
  return channels == 0 ? 0 : tensor.columns() / channels;
}

// What a kind of device computes. Backend says what each operation does, and has checked its arguments before it gets
// here; tensors may have no elements. Internal: the device or its library refuses.
//
//   class CpuOperations : public Operations {
//    public:
//     RUBATO_DECLARE_OPERATIONS(override)
//   };
class Operations {
 public:
  virtual ~Operations() = default;

  RUBATO_DECLARE_OPERATIONS(= 0)
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_OPERATIONS_H_
