#include <algorithm>

#include "common/status.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/im2col.h"
#include "kernels/cuda/reduction.h"

namespace rubato::cuda {
namespace {

int64_t Positions(const Conv2dGeometry& g) { return g.output_height() * g.output_width(); }
int64_t Taps(const Conv2dGeometry& g) { return g.channels * g.kernel * g.kernel; }
int64_t InputElements(const Conv2dGeometry& g) { return g.channels * g.height * g.width; }
int64_t OutputElements(const Conv2dGeometry& g) { return g.filters * Positions(g); }

}  // namespace

absl::StatusOr<void*> CudaOperations::NewOperand(Work& work, int64_t n) {
  RUBATO_ASSIGN_OR_RETURN(char* memory, work.Scratch<char>(n * ElementBytes(type_)));
  return static_cast<void*>(memory);
}

absl::Status CudaOperations::Gemm(bool transpose_a, bool transpose_b, float alpha, const DeviceTensor& a,
                                  const DeviceTensor& b, float beta, const DeviceTensor& c) {
  const GemmSizes sizes(transpose_a, transpose_b, a, b);
  if (c.elements() == 0) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&a, &b}, {&c}));
  if (sizes.k == 0) return cuda::Scale(work.stream(), c.type(), beta, c.elements(), OutBytes(c));
  return cublas_->Multiply({.m = sizes.m, .n = sizes.n, .k = sizes.k}, type_, alpha,
                           {.data = InBytes(a), .columns = a.columns(), .transposed = transpose_a},
                           {.data = InBytes(b), .columns = b.columns(), .transposed = transpose_b}, beta,
                           {.data = OutBytes(c), .type = c.type(), .columns = c.columns()});
}

absl::Status CudaOperations::Linear(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& bias,
                                    const DeviceTensor& y) {
  if (x.elements() == 0 || bias.empty()) {
    RUBATO_RETURN_IF_ERROR(Gemm(false, true, 1, x, weight, 0, y));
    return bias.empty() ? absl::OkStatus() : AddBias(bias, y);
  }
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x, &weight, &bias}, {&y}));
  const int64_t inputs = weight.columns(), units = weight.rows();
  CublasLt::Linear linear = {.sizes = {.rows = x.rows(), .inputs = inputs, .units = units},
                             .type = type_,
                             .x = InBytes(x),
                             .weight = InBytes(weight),
                             .bias = In(bias),
                             .y = OutBytes(y)};
  if (type_ != ElementType::kFloat32) {
    RUBATO_ASSIGN_OR_RETURN(void* rounded, NewOperand(work, units));
    RUBATO_RETURN_IF_ERROR(Convert(work.stream(), ElementType::kFloat32, In(bias), units, type_, rounded));
    linear.bias = rounded;
  }
  RUBATO_ASSIGN_OR_RETURN(const bool done, cublas_lt_->MultiplyAddBias(work, linear));
  if (done) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(cublas_->Multiply({.m = x.rows(), .n = units, .k = inputs}, type_, 1,
                                           {.data = InBytes(x), .columns = inputs},
                                           {.data = InBytes(weight), .columns = inputs, .transposed = true}, 0,
                                           {.data = OutBytes(y), .type = type_, .columns = units}));
  return cuda::AddBias(work.stream(), type_, In(bias), x.rows(), units, 1, OutBytes(y));
}

// dweight [units, inputs] = dy^T x, and dx [n, inputs] = dy weight.
absl::Status CudaOperations::LinearBackward(const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& dy,
                                            bool accumulate, const DeviceTensor& dx, const DeviceTensor& dweight,
                                            const DeviceTensor& dbias) {
  bool summed = false;
  if (!dbias.empty() && dweight.elements() > 0) {
    RUBATO_ASSIGN_OR_RETURN(summed, MultiplySumRows(x, dy, accumulate, dweight, dbias));
  }
  if (!summed) {
    RUBATO_RETURN_IF_ERROR(Gemm(true, false, 1, dy, x, accumulate ? 1 : 0, dweight));
    if (!dbias.empty()) RUBATO_RETURN_IF_ERROR(BiasGradient(dy, accumulate, dbias));
  }
  return dx.empty() ? absl::OkStatus() : Gemm(false, false, 1, dy, weight, 0, dx);
}

absl::Status CudaOperations::LinearUnits(const UnitRange& units, const DeviceTensor& x, const DeviceTensor& weight,
                                         const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(Begin({&x, &weight}, {&y}).status());
  const int64_t inputs = weight.columns();
  return cublas_->Multiply(
      {.m = x.rows(), .n = units.size(), .k = inputs}, type_, 1, {.data = InBytes(x), .columns = inputs},
      {.data = OperandAt(InBytes(weight), units.begin * inputs), .columns = inputs, .transposed = true}, 0,
      {.data = OperandAt(OutBytes(y), units.begin), .type = type_, .columns = weight.rows()});
}

absl::Status CudaOperations::LinearUnitsGradient(const UnitRange& units, const DeviceTensor& x, const DeviceTensor& dy,
                                                 bool accumulate, const DeviceTensor& dweight) {
  RUBATO_RETURN_IF_ERROR(Begin({&x, &dy}, {&dweight}).status());
  const int64_t inputs = dweight.columns();
  return cublas_->Multiply(
      {.m = units.size(), .n = inputs, .k = x.rows()}, type_, 1,
      {.data = OperandAt(InBytes(dy), units.begin), .columns = dweight.rows(), .transposed = true},
      {.data = InBytes(x), .columns = inputs}, accumulate ? 1 : 0,
      {.data = Out(dweight) + units.begin * inputs, .type = ElementType::kFloat32, .columns = inputs});
}

absl::StatusOr<bool> CudaOperations::MultiplySumRows(const DeviceTensor& x, const DeviceTensor& dy, bool accumulate,
                                                     const DeviceTensor& dweight, const DeviceTensor& dbias) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x, &dy}, {&dweight, &dbias}));
  CublasLt::LinearGradient gradient = {
      .sizes = {.rows = x.rows(), .inputs = dweight.columns(), .units = dweight.rows()},
      .type = type_,
      .x = InBytes(x),
      .dy = InBytes(dy),
      .accumulate = accumulate,
      .dweight = Out(dweight),
      .dbias = Out(dbias)};
  // The library overwrites it.
  if (accumulate) {
    RUBATO_ASSIGN_OR_RETURN(gradient.dbias, work.Scratch<float>(dbias.elements()));
  }
  RUBATO_ASSIGN_OR_RETURN(const bool done, cublas_lt_->MultiplySumRows(work, gradient));
  if (!done || !accumulate) return done;
  RUBATO_RETURN_IF_ERROR(
      AddConverted(work.stream(), ElementType::kFloat32, gradient.dbias, dbias.elements(), Out(dbias)));
  return true;
}

absl::StatusOr<bool> CudaOperations::UsesCudnn(const Conv2dGeometry& g, int64_t images) {
  if (cudnn_ == nullptr) return false;
  return cudnn_->CanDo(g, images, kCudnnBytes + Conv2dWorkspaceBytes(workspace_, g, images));
}

// y of each image [filters, positions] = weight [filters, taps] * its columns [taps, positions].
absl::Status CudaOperations::Conv2d(const Conv2dGeometry& g, const DeviceTensor& x, const DeviceTensor& weight,
                                    const DeviceTensor& y) {
  if (y.elements() == 0) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x, &weight}, {&y}));
  RUBATO_ASSIGN_OR_RETURN(const bool uses_cudnn, UsesCudnn(g, x.rows()));
  if (uses_cudnn) {
    RUBATO_ASSIGN_OR_RETURN(const bool done,
                            cudnn_->Forward(work, g, x.rows(), InBytes(x), InBytes(weight), OutBytes(y)));
    if (done) return absl::OkStatus();
  }
  const int64_t group = ImagesAtOnce(workspace_, g, x.rows()), positions = Positions(g), taps = Taps(g);
  RUBATO_ASSIGN_OR_RETURN(void* columns, NewOperand(work, taps * group * positions));
  for (int64_t n = 0; n < x.rows(); n += group) {
    const int64_t images = std::min(group, x.rows() - n);
    RUBATO_RETURN_IF_ERROR(
        Im2col(work.stream(), g, images, type_, OperandAt(InBytes(x), n * InputElements(g)), columns));
    RUBATO_RETURN_IF_ERROR(cublas_->Multiply({.m = g.filters, .n = positions, .k = taps, .batch = images}, type_, 1,
                                             {.data = InBytes(weight), .columns = taps},
                                             {.data = columns, .columns = images * positions, .stride = positions}, 0,
                                             {.data = OperandAt(OutBytes(y), n * OutputElements(g)),
                                              .type = type_,
                                              .columns = positions,
                                              .stride = OutputElements(g)}));
  }
  return absl::OkStatus();
}

// The columns of each image [taps, positions] = weight^T * its dy [filters, positions], folded.
absl::Status CudaOperations::Conv2dBackwardData(const Conv2dGeometry& g, const DeviceTensor& dy,
                                                const DeviceTensor& weight, const DeviceTensor& dx) {
  if (dx.elements() == 0) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&dy, &weight}, {&dx}));
  if (dy.elements() == 0) return cuda::Fill(work.stream(), type_, 0, dx.elements(), OutBytes(dx));
  RUBATO_ASSIGN_OR_RETURN(const bool uses_cudnn, UsesCudnn(g, dx.rows()));
  if (uses_cudnn) {
    RUBATO_ASSIGN_OR_RETURN(const bool done,
                            cudnn_->BackwardData(work, g, dx.rows(), InBytes(dy), InBytes(weight), OutBytes(dx)));
    if (done) return absl::OkStatus();
  }
  const int64_t group = ImagesAtOnce(workspace_, g, dx.rows()), positions = Positions(g), taps = Taps(g);
  RUBATO_ASSIGN_OR_RETURN(float* columns, work.Scratch<float>(taps * group * positions));
  for (int64_t n = 0; n < dx.rows(); n += group) {
    const int64_t images = std::min(group, dx.rows() - n);
    RUBATO_RETURN_IF_ERROR(cublas_->Multiply(
        {.m = taps, .n = positions, .k = g.filters, .batch = images}, type_, 1,
        {.data = InBytes(weight), .columns = taps, .transposed = true},
        {.data = OperandAt(InBytes(dy), n * OutputElements(g)), .columns = positions, .stride = OutputElements(g)}, 0,
        {.data = columns, .columns = images * positions, .stride = positions}));
    RUBATO_RETURN_IF_ERROR(
        Fold(work.stream(), g, images, type_, columns, OperandAt(OutBytes(dx), n * InputElements(g))));
  }
  return absl::OkStatus();
}

// cuDNN writes the gradient in the type of the images.
absl::StatusOr<bool> CudaOperations::CudnnBackwardWeight(Work& work, const Conv2dGeometry& g, const DeviceTensor& x,
                                                         const DeviceTensor& dy, bool accumulate,
                                                         const DeviceTensor& dweight) {
  if (type_ == ElementType::kFloat32) {
    return cudnn_->BackwardWeight(work, g, x.rows(), InBytes(x), InBytes(dy), accumulate, OutBytes(dweight));
  }
  const int64_t n = dweight.elements();
  RUBATO_ASSIGN_OR_RETURN(void* gradient, NewOperand(work, n));
  RUBATO_ASSIGN_OR_RETURN(const bool done,
                          cudnn_->BackwardWeight(work, g, x.rows(), InBytes(x), InBytes(dy), false, gradient));
  if (!done) return false;
  RUBATO_RETURN_IF_ERROR(accumulate ? AddConverted(work.stream(), type_, gradient, n, Out(dweight))
                                    : Convert(work.stream(), type_, gradient, n, ElementType::kFloat32, Out(dweight)));
  return true;
}

// dweight [filters, taps] = dy [filters, images * positions] * columns^T.
absl::Status CudaOperations::Conv2dBackwardWeight(const Conv2dGeometry& g, const DeviceTensor& x,
                                                  const DeviceTensor& dy, bool accumulate,
                                                  const DeviceTensor& dweight) {
  if (dweight.elements() == 0) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x, &dy}, {&dweight}));
  if (x.rows() == 0) {
    return accumulate ? absl::OkStatus()
                      : cuda::Fill(work.stream(), ElementType::kFloat32, 0, dweight.elements(), Out(dweight));
  }
  RUBATO_ASSIGN_OR_RETURN(const bool uses_cudnn, UsesCudnn(g, x.rows()));
  if (uses_cudnn) {
    RUBATO_ASSIGN_OR_RETURN(const bool done, CudnnBackwardWeight(work, g, x, dy, accumulate, dweight));
    if (done) return absl::OkStatus();
  }
  const int64_t group = ImagesAtOnce(workspace_, g, x.rows()), positions = Positions(g), taps = Taps(g);
  RUBATO_ASSIGN_OR_RETURN(void* columns, NewOperand(work, taps * group * positions));
  RUBATO_ASSIGN_OR_RETURN(void* gradient, NewOperand(work, g.filters * group * positions));
  for (int64_t n = 0; n < x.rows(); n += group) {
    const int64_t images = std::min(group, x.rows() - n), products = images * positions;
    RUBATO_RETURN_IF_ERROR(
        Im2col(work.stream(), g, images, type_, OperandAt(InBytes(x), n * InputElements(g)), columns));
    RUBATO_RETURN_IF_ERROR(
        GatherFilters(work.stream(), g, images, type_, OperandAt(InBytes(dy), n * OutputElements(g)), gradient));
    RUBATO_RETURN_IF_ERROR(cublas_->Multiply({.m = g.filters, .n = taps, .k = products}, type_, 1,
                                             {.data = gradient, .columns = products},
                                             {.data = columns, .columns = products, .transposed = true},
                                             n > 0 || accumulate ? 1 : 0, {.data = Out(dweight), .columns = taps}));
  }
  return absl::OkStatus();
}

}  // namespace rubato::cuda
