#ifndef RUBATO_KERNELS_CHECK_ARGUMENTS_H_
#define RUBATO_KERNELS_CHECK_ARGUMENTS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/device_tensor.h"
#include "kernels/geometry.h"
#include "kernels/optimizer/update_rule.h"

// What Backend checks before an operation: InvalidArgument with the operation's and the argument's name, what was
// expected and what was found.
namespace rubato {

// Bytes of a tensor. InvalidArgument: a dimension is negative, or the product overflows, or the type has 16 bits and is
// not activation_type.
absl::StatusOr<int64_t> CheckedBytes(const Shape& shape, ElementType type, ElementType activation_type);
absl::Status CheckTensor(const char* operation, const char* argument, const DeviceTensor& tensor, const Shape& shape,
                         ElementType type = ElementType::kFloat32);
// Any shape of at least one dimension.
absl::Status CheckFloat(const char* operation, const char* argument, const DeviceTensor& tensor);
// The same for float32 or a type of 16 bits.
absl::Status CheckActivation(const char* operation, const char* argument, const DeviceTensor& tensor);
// Like `other`, which is an activation called `other_argument`.
absl::Status CheckSame(const char* operation, const char* argument, const DeviceTensor& tensor,
                       const char* other_argument, const DeviceTensor& other);
// Activations of one shape.
absl::Status CheckCopy(const DeviceTensor& x, const DeviceTensor& y);
// OutOfRange when [offset, offset + count) is not inside the tensor.
absl::Status CheckRange(const char* operation, const DeviceTensor& tensor, int64_t offset, int64_t count);

// Activations of one type with equally many rows, which the range is inside of.
absl::Status CheckColumns(const ColumnRange& range, const DeviceTensor& x, const DeviceTensor& y);
// x [n, vectors * width] with two vectors or more; y [n, width + pairs of vectors] with `dots`, otherwise [n, 1].
absl::Status CheckInteraction(const char* operation, int64_t width, bool dots, const DeviceTensor& x,
                              const DeviceTensor& y);

// Operands have activation_type; c has it, or is float32.
absl::Status CheckGemm(ElementType activation_type, bool transpose_a, bool transpose_b, const DeviceTensor& a,
                       const DeviceTensor& b, const DeviceTensor& c);
// `bias` may be empty.
absl::Status CheckLinear(ElementType activation_type, const char* operation, const DeviceTensor& x,
                         const DeviceTensor& weight, const DeviceTensor& bias, const DeviceTensor& y);
// `dx` and `dbias` may be empty.
absl::Status CheckUnits(const char* operation, const UnitRange& units, const DeviceTensor& x,
                        const DeviceTensor& weight);
absl::Status CheckLinearUnitsGradient(ElementType activation_type, const UnitRange& units, const DeviceTensor& x,
                                      const DeviceTensor& dy, const DeviceTensor& dweight);
absl::Status CheckLinearBackward(ElementType activation_type, const DeviceTensor& x, const DeviceTensor& weight,
                                 const DeviceTensor& dy, const DeviceTensor& dx, const DeviceTensor& dweight,
                                 const DeviceTensor& dbias);
// `x` and `y` are input and output or their gradients, of activation_type; `weight` is the weight, of weight_type, or
// its gradient.
absl::Status CheckConv2d(ElementType activation_type, ElementType weight_type, const Conv2dGeometry& geometry,
                         const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& y);
// `argmax` may be null.
absl::Status CheckPool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y,
                         const DeviceTensor* argmax);
// bias [channels], y [n, channels, ...].
absl::Status CheckBias(const char* operation, const DeviceTensor& bias, const DeviceTensor& y);
absl::Status CheckDropout(const DropoutMask& mask, const DeviceTensor& x, const DeviceTensor& y);
// mean [n].
absl::Status CheckLayerNorm(const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& bias,
                            const DeviceTensor& y, const DeviceTensor& mean, const DeviceTensor& inverse_deviation);
absl::Status CheckGroupNorm(int64_t groups, const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& bias,
                            const DeviceTensor& y, const DeviceTensor& mean, const DeviceTensor& inverse_deviation);
// `table` and `y` are these or their gradients.
absl::Status CheckEmbed(const char* operation, const DeviceTensor& table, const DeviceTensor& indices,
                        const DeviceTensor& y);
absl::Status CheckAttention(ElementType activation_type, const AttentionGeometry& geometry, const DeviceTensor& qkv,
                            const DeviceTensor& y, const DeviceTensor& log_sum_exp);
// For the backward operation of either, what is not in the forward one: `dx` may be empty.
absl::Status CheckNormBackward(const char* operation, const DeviceTensor& x, const DeviceTensor& dx,
                               const DeviceTensor& dgain, const DeviceTensor& dbias);
// A float64 [1].
absl::Status CheckSum(const char* operation, const char* argument, const DeviceTensor& sum);
absl::Status CheckScaleToNorm(float max_norm, const DeviceTensor& sum_of_squares, const DeviceTensor& y);
// `gradient` may be empty.
absl::Status CheckLoss(const char* operation, const DeviceTensor& outputs, const DeviceTensor& gradient,
                       const DeviceTensor& sums);
// Slots that the rule's algorithm has not are empty.
absl::Status CheckUpdate(const UpdateRule& rule, const DeviceTensor& gradient, const DeviceTensor& weights,
                         const DeviceTensor& first_slot, const DeviceTensor& second_slot);
absl::Status CheckEncode(const EncodedRange& range, const DeviceTensor& values, const DeviceTensor& residual,
                         const DeviceTensor& encoded);

}  // namespace rubato

#endif  // RUBATO_KERNELS_CHECK_ARGUMENTS_H_
