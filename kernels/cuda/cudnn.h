#ifndef RUBATO_KERNELS_CUDA_CUDNN_H_
#define RUBATO_KERNELS_CUDA_CUDNN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend_cuda.h"
#include "kernels/cuda/stream.h"
#include "kernels/cuda/work.h"
#include "kernels/geometry.h"

namespace rubato::cuda {

// Convolutions of float32 images by cuDNN, loaded when it is created. Products are rounded to TF32 in every precision
// but kFloat32, where bfloat16 and binary16 would keep no more bits of an input or less of its range. The algorithms
// are those that give the same bits every time. One thread at a time.
//
// Sizes are all above 0, and CanDo has said yes. Internal: the library refused. ResourceExhausted: no scratch memory.
class Cudnn {
 public:
  // FailedPrecondition: the program was built without cuDNN's headers, or the library is not there. Internal: it
  // refused.
  static absl::StatusOr<std::unique_ptr<Cudnn>> Create(Stream stream, MatrixPrecision precision);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  // "cuDNN 9.13.0".
  std::string Name() const;

  // Not where the library, which counts elements in 31 bits, cannot, or one of the passes takes more scratch memory.
  absl::StatusOr<bool> CanDo(const Conv2dGeometry& geometry, int64_t images, int64_t scratch_bytes);

  absl::Status Forward(Work& work, const Conv2dGeometry& geometry, int64_t images, const float* x, const float* weight,
                       float* y);
  absl::Status BackwardData(Work& work, const Conv2dGeometry& geometry, int64_t images, const float* dy,
                            const float* weight, float* dx);
  absl::Status BackwardWeight(Work& work, const Conv2dGeometry& geometry, int64_t images, const float* x,
                              const float* dy, bool accumulate, float* dweight);

 private:
  struct Library;
  // The library's description of a convolution of so many images.
  struct Convolution;

  explicit Cudnn(MatrixPrecision precision);
  absl::Status Start(Stream stream);
  absl::StatusOr<const Convolution*> Describe(const Conv2dGeometry& geometry, int64_t images);
  absl::Status Fill(const Conv2dGeometry& geometry, int64_t images, Convolution* convolution);

  const MatrixPrecision precision_;
  std::unique_ptr<Library> library_;
  void* handle_ = nullptr;
  std::map<std::pair<Conv2dGeometry, int64_t>, std::unique_ptr<Convolution>> convolutions_;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_CUDNN_H_
