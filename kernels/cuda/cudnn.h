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

// Convolutions by cuDNN, loaded when it is created. Images, weights and their gradients have the type that products of
// the precision take, an activation's; float32 is rounded to TF32 with that precision. The algorithms are those that
// give the same bits every time. One thread at a time.
//
// Sizes are all above 0, and CanDo has said yes. False: the library does not do this one after all, nothing has been
// done, and CanDo says no from then on. Internal: it failed. ResourceExhausted: no scratch memory.
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

  // Not if the library, which counts elements in 31 bits, cannot, has no such algorithm, or one of the passes takes
  // more scratch memory.
  absl::StatusOr<bool> CanDo(const Conv2dGeometry& geometry, int64_t images, int64_t scratch_bytes);

  absl::StatusOr<bool> Forward(Work& work, const Conv2dGeometry& geometry, int64_t images, const void* x,
                               const void* weight, void* y);
  absl::StatusOr<bool> BackwardData(Work& work, const Conv2dGeometry& geometry, int64_t images, const void* dy,
                                    const void* weight, void* dx);
  absl::StatusOr<bool> BackwardWeight(Work& work, const Conv2dGeometry& geometry, int64_t images, const void* x,
                                      const void* dy, bool accumulate, void* dweight);

 private:
  struct Library;
  // The library's description of a convolution of so many images.
  struct Convolution;

  explicit Cudnn(MatrixPrecision precision);
  absl::Status Start(Stream stream);
  absl::StatusOr<Convolution*> Describe(const Conv2dGeometry& geometry, int64_t images);
  // Of the library's status.
  absl::StatusOr<bool> Outcome(int status, Convolution* convolution);
  absl::Status Fill(const Conv2dGeometry& geometry, int64_t images, Convolution* convolution);

  const MatrixPrecision precision_;
  std::unique_ptr<Library> library_;
  void* handle_ = nullptr;
  std::map<std::pair<Conv2dGeometry, int64_t>, std::unique_ptr<Convolution>> convolutions_;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_CUDNN_H_
