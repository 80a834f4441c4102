#ifndef RUBATO_KERNELS_CUDA_STREAM_H_
#define RUBATO_KERNELS_CUDA_STREAM_H_

// The runtime's handles without its headers, so that what launches kernels can be called from any C++.
struct CUstream_st;
struct CUevent_st;

namespace rubato::cuda {

using Stream = CUstream_st*;

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_STREAM_H_
