#include "kernels/check_arguments.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/operations.h"

namespace rubato {
namespace {

absl::Status Unexpected(const char* operation, const char* argument, const DeviceTensor& tensor,
                        absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(operation, ": ", argument, " is ", tensor.Description(), ", expected ", expected));
}

// Of one row: all dimensions but the first.
Shape RowShape(const DeviceTensor& tensor) { return Shape(tensor.shape().begin() + 1, tensor.shape().end()); }

}  // namespace

absl::StatusOr<int64_t> CheckedBytes(const Shape& shape, ElementType type, ElementType activation_type) {
  if (ElementBytes(type) == 2 && type != activation_type) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Allocate: type ", TypeName(type),
        "; allowed of 16 bits: ", ElementBytes(activation_type) == 2 ? TypeName(activation_type) : "none"));
  }
  int64_t bytes = ElementBytes(type);
  for (int64_t dimension : shape) {
    if (dimension < 0 || (dimension != 0 && bytes > std::numeric_limits<int64_t>::max() / 2 / dimension)) {
      return absl::InvalidArgumentError(absl::StrCat("Allocate: no tensor has the shape ", ShapeText(shape)));
    }
    bytes *= dimension;
  }
  return bytes;
}

absl::Status CheckTensor(const char* operation, const char* argument, const DeviceTensor& tensor, const Shape& shape,
                         ElementType type) {
  if (!tensor.empty() && tensor.type() == type && tensor.shape() == shape) return absl::OkStatus();
  return Unexpected(operation, argument, tensor, absl::StrCat(TypeName(type), " [", ShapeText(shape), "]"));
}

absl::Status CheckFloat(const char* operation, const char* argument, const DeviceTensor& tensor) {
  if (!tensor.empty() && tensor.type() == ElementType::kFloat32 && !tensor.shape().empty()) return absl::OkStatus();
  return Unexpected(operation, argument, tensor, "a float32 tensor");
}

absl::Status CheckActivation(const char* operation, const char* argument, const DeviceTensor& tensor) {
  const bool is_float = tensor.type() == ElementType::kFloat32 || ElementBytes(tensor.type()) == 2;
  if (!tensor.empty() && is_float && !tensor.shape().empty()) return absl::OkStatus();
  return Unexpected(operation, argument, tensor, "a float32 tensor, or one of 16 bits");
}

absl::Status CheckSame(const char* operation, const char* argument, const DeviceTensor& tensor,
                       const char* other_argument, const DeviceTensor& other) {
  RUBATO_RETURN_IF_ERROR(CheckActivation(operation, other_argument, other));
  return CheckTensor(operation, argument, tensor, other.shape(), other.type());
}

absl::Status CheckCopy(const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckActivation("Copy", "x", x));
  RUBATO_RETURN_IF_ERROR(CheckActivation("Copy", "y", y));
  return CheckTensor("Copy", "y", y, x.shape(), y.type());
}

absl::Status CheckRange(const char* operation, const DeviceTensor& tensor, int64_t offset, int64_t count) {
  if (!tensor.empty() && offset >= 0 && count >= 0 && offset <= tensor.elements() &&
      count <= tensor.elements() - offset) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(
      absl::StrCat(operation, ": ", count, " elements from element ", offset, " on are not in ", tensor.Description()));
}

absl::Status CheckColumns(const ColumnRange& range, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckActivation("CopyColumns", "x", x));
  RUBATO_RETURN_IF_ERROR(CheckTensor("CopyColumns", "y", y, y.shape(), x.type()));
  if (y.shape().empty() || y.rows() != x.rows()) {
    return Unexpected("CopyColumns", "y", y, absl::StrCat(x.rows(), " rows, as x has"));
  }
  const auto is_inside = [&](int64_t begin, int64_t columns) {
    return begin >= 0 && begin <= columns && range.count <= columns - begin;
  };
  if (x.rows() == 0) return absl::OkStatus();
  if (range.count >= 0 && is_inside(range.from, x.columns()) && is_inside(range.to, y.columns())) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(absl::StrCat("CopyColumns: ", range.count, " columns from column ", range.from, " of ",
                                            x.Description(), " do not go to column ", range.to, " of ",
                                            y.Description()));
}

absl::Status CheckInteraction(const char* operation, int64_t width, bool dots, const DeviceTensor& x,
                              const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckActivation(operation, "x", x));
  const bool fits = x.shape().size() == 2 && width >= 1 && x.shape()[1] % width == 0;
  const int64_t vectors = fits ? x.shape()[1] / width : 0;
  if (vectors < 2) return Unexpected(operation, "x", x, absl::StrCat("two or more vectors of ", width, " in a row"));
  const int64_t outputs = dots ? width + vectors * (vectors - 1) / 2 : 1;
  return CheckTensor(operation, "y", y, {x.rows(), outputs}, x.type());
}

absl::Status CheckGemm(ElementType activation_type, bool transpose_a, bool transpose_b, const DeviceTensor& a,
                       const DeviceTensor& b, const DeviceTensor& c) {
  RUBATO_RETURN_IF_ERROR(CheckTensor("Gemm", "a", a, a.shape(), activation_type));
  RUBATO_RETURN_IF_ERROR(CheckTensor("Gemm", "b", b, b.shape(), activation_type));
  RUBATO_RETURN_IF_ERROR(CheckActivation("Gemm", "c", c));
  const GemmSizes sizes(transpose_a, transpose_b, a, b);
  int64_t b_inner = transpose_b ? b.columns() : b.rows();
  if (b_inner != sizes.k) {
    return Unexpected("Gemm", "b", b, absl::StrCat("a side of ", sizes.k, " to meet a, ", a.Description()));
  }
  if (c.rows() != sizes.m || c.columns() != sizes.n) {
    return Unexpected("Gemm", "c", c, absl::StrCat(sizes.m, " rows of ", sizes.n));
  }
  return absl::OkStatus();
}

absl::Status CheckLinear(ElementType activation_type, const char* operation, const DeviceTensor& x,
                         const DeviceTensor& weight, const DeviceTensor& bias, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckTensor(operation, "weight", weight, weight.shape(), activation_type));
  RUBATO_RETURN_IF_ERROR(CheckTensor(operation, "x", x, {x.rows(), weight.columns()}, activation_type));
  RUBATO_RETURN_IF_ERROR(CheckTensor(operation, "y", y, {x.rows(), weight.rows()}, activation_type));
  return bias.empty() ? absl::OkStatus() : CheckTensor(operation, "bias", bias, {weight.rows()});
}

absl::Status CheckUnits(const char* operation, const UnitRange& units, const DeviceTensor& x,
                        const DeviceTensor& weight) {
  if (x.elements() == 0) return Unexpected(operation, "x", x, "one or more rows of one or more inputs");
  if (units.begin >= 0 && units.begin <= units.end && units.end <= weight.rows()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(operation, ": units [", units.begin, ", ", units.end, ") are not all of ",
                                            weight.Description(), "'s"));
}

absl::Status CheckLinearUnitsGradient(ElementType activation_type, const UnitRange& units, const DeviceTensor& x,
                                      const DeviceTensor& dy, const DeviceTensor& dweight) {
  constexpr char kOperation[] = "LinearUnitsGradient";
  RUBATO_RETURN_IF_ERROR(CheckTensor(kOperation, "dweight", dweight, dweight.shape()));
  RUBATO_RETURN_IF_ERROR(CheckTensor(kOperation, "x", x, {x.rows(), dweight.columns()}, activation_type));
  RUBATO_RETURN_IF_ERROR(CheckTensor(kOperation, "dy", dy, {x.rows(), dweight.rows()}, activation_type));
  return CheckUnits(kOperation, units, x, dweight);
}

absl::Status CheckLinearBackward(ElementType activation_type, const DeviceTensor& x, const DeviceTensor& weight,
                                 const DeviceTensor& dy, const DeviceTensor& dx, const DeviceTensor& dweight,
                                 const DeviceTensor& dbias) {
  constexpr char kOperation[] = "LinearBackward";
  RUBATO_RETURN_IF_ERROR(CheckLinear(activation_type, kOperation, x, weight, DeviceTensor(), dy));
  RUBATO_RETURN_IF_ERROR(CheckTensor(kOperation, "dweight", dweight, weight.shape()));
  if (!dx.empty()) RUBATO_RETURN_IF_ERROR(CheckSame(kOperation, "dx", dx, "x", x));
  return dbias.empty() ? absl::OkStatus() : CheckTensor(kOperation, "dbias", dbias, {weight.rows()});
}

absl::Status CheckConv2d(ElementType activation_type, ElementType weight_type, const Conv2dGeometry& geometry,
                         const DeviceTensor& x, const DeviceTensor& weight, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckActivation("Conv2d", "x", x));
  if (geometry.kernel < 1 || geometry.stride < 1 || geometry.padding < 0 || geometry.padding >= geometry.kernel ||
      geometry.kernel > geometry.height + 2 * geometry.padding ||
      geometry.kernel > geometry.width + 2 * geometry.padding) {
    return absl::InvalidArgumentError(absl::StrCat("Conv2d: kernel ", geometry.kernel, ", stride ", geometry.stride,
                                                   ", padding ", geometry.padding, " do not fit an input of ",
                                                   geometry.height, "x", geometry.width));
  }
  RUBATO_RETURN_IF_ERROR(CheckTensor("Conv2d", "x", x, geometry.InputShape(x.rows()), activation_type));
  RUBATO_RETURN_IF_ERROR(CheckTensor("Conv2d", "weight", weight, geometry.WeightShape(), weight_type));
  return CheckTensor("Conv2d", "y", y, geometry.OutputShape(x.rows()), activation_type);
}

absl::Status CheckPool2d(const Pool2dGeometry& geometry, const DeviceTensor& x, const DeviceTensor& y,
                         const DeviceTensor* argmax) {
  RUBATO_RETURN_IF_ERROR(CheckActivation("Pool2d", "x", x));
  if (geometry.window < 1 || geometry.stride < 1 || geometry.window > geometry.height ||
      geometry.window > geometry.width) {
    return absl::InvalidArgumentError(absl::StrCat("Pool2d: window ", geometry.window, ", stride ", geometry.stride,
                                                   " do not fit an input of ", geometry.height, "x", geometry.width));
  }
  RUBATO_RETURN_IF_ERROR(CheckTensor("Pool2d", "x", x, geometry.InputShape(x.rows()), x.type()));
  RUBATO_RETURN_IF_ERROR(CheckTensor("Pool2d", "y", y, geometry.OutputShape(x.rows()), x.type()));
  if (argmax == nullptr) return absl::OkStatus();
  return CheckTensor("Pool2d", "argmax", *argmax, y.shape(), ElementType::kInt32);
}

absl::Status CheckBias(const char* operation, const DeviceTensor& bias, const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckActivation(operation, "y", y));
  if (y.shape().size() < 2) return Unexpected(operation, "y", y, "at least two dimensions");
  return CheckTensor(operation, "bias", bias, {y.shape()[1]});
}

absl::Status CheckDropout(const DropoutMask& mask, const DeviceTensor& x, const DeviceTensor& y) {
  if (!(mask.rate >= 0 && mask.rate < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("Dropout: rate ", mask.rate, " is not in 0 to 1 (excluded)"));
  }
  return CheckSame("Dropout", "y", y, "x", x);
}

absl::Status CheckLayerNorm(const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& bias,
                            const DeviceTensor& y, const DeviceTensor& mean, const DeviceTensor& inverse_deviation) {
  RUBATO_RETURN_IF_ERROR(CheckActivation("LayerNorm", "x", x));
  RUBATO_RETURN_IF_ERROR(CheckTensor("LayerNorm", "gain", gain, RowShape(x)));
  RUBATO_RETURN_IF_ERROR(CheckTensor("LayerNorm", "bias", bias, RowShape(x)));
  RUBATO_RETURN_IF_ERROR(CheckTensor("LayerNorm", "y", y, x.shape(), x.type()));
  RUBATO_RETURN_IF_ERROR(CheckTensor("LayerNorm", "mean", mean, {x.rows()}));
  return CheckTensor("LayerNorm", "inverse_deviation", inverse_deviation, {x.rows()});
}

absl::Status CheckGroupNorm(int64_t groups, const DeviceTensor& x, const DeviceTensor& gain, const DeviceTensor& bias,
                            const DeviceTensor& y, const DeviceTensor& mean, const DeviceTensor& inverse_deviation) {
  RUBATO_RETURN_IF_ERROR(CheckActivation("GroupNorm", "x", x));
  if (x.shape().size() < 2) return Unexpected("GroupNorm", "x", x, "at least two dimensions");
  const int64_t channels = x.shape()[1];
  if (groups < 1 || channels % groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("GroupNorm: groups ", groups, " does not divide ", channels, " channels"));
  }
  RUBATO_RETURN_IF_ERROR(CheckTensor("GroupNorm", "gain", gain, {channels}));
  RUBATO_RETURN_IF_ERROR(CheckTensor("GroupNorm", "bias", bias, {channels}));
  RUBATO_RETURN_IF_ERROR(CheckTensor("GroupNorm", "y", y, x.shape(), x.type()));
  RUBATO_RETURN_IF_ERROR(CheckTensor("GroupNorm", "mean", mean, {x.rows(), groups}));
  return CheckTensor("GroupNorm", "inverse_deviation", inverse_deviation, {x.rows(), groups});
}

absl::Status CheckEmbed(const char* operation, const DeviceTensor& table, const DeviceTensor& indices,
                        const DeviceTensor& y) {
  RUBATO_RETURN_IF_ERROR(CheckFloat(operation, "table", table));
  if (table.shape().size() != 2) return Unexpected(operation, "table", table, "two dimensions");
  RUBATO_RETURN_IF_ERROR(CheckTensor(operation, "indices", indices, indices.shape(), ElementType::kInt32));
  Shape output = indices.shape();
  output.push_back(table.columns());
  RUBATO_RETURN_IF_ERROR(CheckActivation(operation, "y", y));
  RUBATO_RETURN_IF_ERROR(CheckTensor(operation, "y", y, output, y.type()));
  if (indices.elements() <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(operation, ": ", indices.elements(), " indices, at most 2^31-1"));
}

absl::Status CheckAttention(ElementType activation_type, const AttentionGeometry& geometry, const DeviceTensor& qkv,
                            const DeviceTensor& y, const DeviceTensor& log_sum_exp) {
  if (geometry.sequence < 1 || geometry.heads < 1 || geometry.head_width < 1) {
    return absl::InvalidArgumentError(absl::StrCat("CausalAttention: sequence ", geometry.sequence, ", heads ",
                                                   geometry.heads, ", head_width ", geometry.head_width,
                                                   " are not all at least 1"));
  }
  RUBATO_RETURN_IF_ERROR(CheckActivation("CausalAttention", "qkv", qkv));
  RUBATO_RETURN_IF_ERROR(CheckTensor("CausalAttention", "qkv", qkv, geometry.InputShape(qkv.rows()), activation_type));
  RUBATO_RETURN_IF_ERROR(CheckTensor("CausalAttention", "y", y, geometry.OutputShape(qkv.rows()), activation_type));
  return CheckTensor("CausalAttention", "log_sum_exp", log_sum_exp, geometry.LogSumExpShape(qkv.rows()));
}

absl::Status CheckNormBackward(const char* operation, const DeviceTensor& x, const DeviceTensor& dx,
                               const DeviceTensor& dgain, const DeviceTensor& dbias) {
  RUBATO_RETURN_IF_ERROR(CheckSame(operation, "dgain", dgain, "dbias", dbias));
  return dx.empty() ? absl::OkStatus() : CheckSame(operation, "dx", dx, "x", x);
}

absl::Status CheckSum(const char* operation, const char* argument, const DeviceTensor& sum) {
  return CheckTensor(operation, argument, sum, {1}, ElementType::kFloat64);
}

absl::Status CheckScaleToNorm(float max_norm, const DeviceTensor& sum_of_squares, const DeviceTensor& y) {
  if (!(max_norm > 0)) {
    return absl::InvalidArgumentError(absl::StrCat("ScaleToNorm: max_norm ", max_norm, " is not over 0"));
  }
  RUBATO_RETURN_IF_ERROR(CheckSum("ScaleToNorm", "sum_of_squares", sum_of_squares));
  return CheckFloat("ScaleToNorm", "y", y);
}

absl::Status CheckLoss(const char* operation, const DeviceTensor& outputs, const DeviceTensor& gradient,
                       const DeviceTensor& sums) {
  RUBATO_RETURN_IF_ERROR(CheckFloat(operation, "outputs", outputs));
  if (!gradient.empty()) RUBATO_RETURN_IF_ERROR(CheckTensor(operation, "gradient", gradient, outputs.shape()));
  return CheckTensor(operation, "sums", sums, {2}, ElementType::kFloat64);
}

absl::Status CheckUpdate(const UpdateRule& rule, const DeviceTensor& gradient, const DeviceTensor& weights,
                         const DeviceTensor& first_slot, const DeviceTensor& second_slot) {
  RUBATO_RETURN_IF_ERROR(CheckFloat("ApplyUpdate", "weights", weights));
  RUBATO_RETURN_IF_ERROR(CheckTensor("ApplyUpdate", "gradient", gradient, weights.shape()));
  const int slots = NumSlots(rule.formula);
  const auto check_slot = [&](const char* argument, const DeviceTensor& slot, bool is_used) {
    if (is_used) return CheckTensor("ApplyUpdate", argument, slot, weights.shape());
    if (slot.empty()) return absl::OkStatus();
    return Unexpected("ApplyUpdate", argument, slot, absl::StrCat("none, as the rule's slots are ", slots));
  };
  RUBATO_RETURN_IF_ERROR(check_slot("first_slot", first_slot, slots > 0));
  return check_slot("second_slot", second_slot, slots > 1);
}

absl::Status CheckEncode(const EncodedRange& range, const DeviceTensor& values, const DeviceTensor& residual,
                         const DeviceTensor& encoded) {
  RUBATO_RETURN_IF_ERROR(CheckFloat("Encode", "values", values));
  RUBATO_RETURN_IF_ERROR(CheckRange("Encode", values, range.offset, range.count));
  const CodecSpec& spec = range.codec;
  if (spec.codec == v1::NONE || !v1::Codec_IsValid(spec.codec) || spec.codec == v1::CODEC_UNSPECIFIED) {
    return absl::InvalidArgumentError(absl::StrCat("Encode: codec ", spec.codec, " encodes nothing"));
  }
  if (TraitsOf(spec.codec).takes_fraction() && !IsCodecFraction(spec.fraction)) {
    return absl::InvalidArgumentError(absl::StrCat("Encode: fraction ", spec.fraction, " is not in (0, 1]"));
  }
  if (range.count > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("Encode: count ", range.count, " is not below 2^31"));
  }
  if (HasResidual(spec.codec)) {
    RUBATO_RETURN_IF_ERROR(CheckTensor("Encode", "residual", residual, {range.count}));
  } else if (!residual.empty()) {
    return Unexpected("Encode", "residual", residual, "none with a codec that keeps nothing");
  }
  const int64_t words = MaxEncodedWords(spec, range.count);
  if (encoded.empty() || encoded.type() != ElementType::kInt32 || encoded.elements() < words) {
    return Unexpected("Encode", "encoded", encoded, absl::StrCat("int32 of at least ", words));
  }
  return absl::OkStatus();
}

}  // namespace rubato
