#ifndef RUBATO_KERNELS_CPU_OPENMP_THREADS_H_
#define RUBATO_KERNELS_CPU_OPENMP_THREADS_H_

// From the OpenMP runtime that oneDNN is linked with; declared here because clang's own omp.h is another package. The
// number holds for the parallel regions that the calling thread starts.
extern "C" void omp_set_num_threads(int threads);

#endif  // RUBATO_KERNELS_CPU_OPENMP_THREADS_H_
