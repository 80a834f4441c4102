// Read by the sanitizers' run-time libraries when a test starts; without them these are functions that nobody calls.
// Third-party code only, each line with its reason.

extern "C" {

const char* __tsan_default_suppressions();
const char* __lsan_default_suppressions();

const char* __tsan_default_suppressions() {
  return
      // The system's gRPC and Abseil are not instrumented: the sanitizer sees their accesses through intercepted calls
      // (memcpy, close, ...) and not the atomics that order them. These are gRPC's libraries.
      "called_from_lib:/usr/lib/x86_64-linux-gnu/libgrpc++.so\n"
      "called_from_lib:/usr/lib/x86_64-linux-gnu/libgrpc.so\n"
      "called_from_lib:libabsl_bad_optional_access.so\n"
      "called_from_lib:libabsl_bad_variant_access.so\n"
      "called_from_lib:libabsl_base.so\n"
      "called_from_lib:libabsl_city.so\n"
      "called_from_lib:libabsl_cord.so\n"
      "called_from_lib:libabsl_cord_internal.so\n"
      "called_from_lib:libabsl_cordz_functions.so\n"
      "called_from_lib:libabsl_cordz_handle.so\n"
      "called_from_lib:libabsl_cordz_info.so\n"
      "called_from_lib:libabsl_debugging_internal.so\n"
      "called_from_lib:libabsl_demangle_internal.so\n"
      "called_from_lib:libabsl_exponential_biased.so\n"
      "called_from_lib:libabsl_graphcycles_internal.so\n"
      "called_from_lib:libabsl_hash.so\n"
      "called_from_lib:libabsl_int128.so\n"
      "called_from_lib:libabsl_low_level_hash.so\n"
      "called_from_lib:libabsl_malloc_internal.so\n"
      "called_from_lib:libabsl_random_internal_platform.so\n"
      "called_from_lib:libabsl_random_internal_pool_urbg.so\n"
      "called_from_lib:libabsl_random_internal_randen.so\n"
      "called_from_lib:libabsl_random_internal_randen_hwaes.so\n"
      "called_from_lib:libabsl_random_internal_randen_hwaes_impl.so\n"
      "called_from_lib:libabsl_random_internal_randen_slow.so\n"
      "called_from_lib:libabsl_random_internal_seed_material.so\n"
      "called_from_lib:libabsl_random_seed_gen_exception.so\n"
      "called_from_lib:libabsl_raw_hash_set.so\n"
      "called_from_lib:libabsl_raw_logging_internal.so\n"
      "called_from_lib:libabsl_spinlock_wait.so\n"
      "called_from_lib:libabsl_stacktrace.so\n"
      "called_from_lib:libabsl_status.so\n"
      "called_from_lib:libabsl_statusor.so\n"
      "called_from_lib:libabsl_str_format_internal.so\n"
      "called_from_lib:libabsl_strerror.so\n"
      "called_from_lib:libabsl_strings.so\n"
      "called_from_lib:libabsl_strings_internal.so\n"
      "called_from_lib:libabsl_symbolize.so\n"
      "called_from_lib:libabsl_synchronization.so\n"
      "called_from_lib:libabsl_throw_delegate.so\n"
      "called_from_lib:libabsl_time.so\n"
      "called_from_lib:libabsl_time_zone.so\n"
      "called_from_lib:libaddress_sorting.so\n"
      "called_from_lib:libcares.so\n"
      "called_from_lib:libcrypto.so\n"
      "called_from_lib:libgpr.so\n"
      "called_from_lib:libgrpc++.so\n"
      "called_from_lib:libgrpc.so\n"
      "called_from_lib:libre2.so\n"
      "called_from_lib:libssl.so\n"
      "called_from_lib:libupb.so\n"
      // The parts of gRPC that are headers are instrumented, but what orders their accesses is in the libraries above.
      "race_top:grpc::\n"
      "race_top:std::_Function_base::_M_empty\n"  // Of gRPC's own callbacks.
      "race:grpc::Slice::~Slice\n"
      "race:grpc::internal::CallOpSet\n"
      "race:grpc::internal::CallbackWithSuccessTag\n"
      "race:grpc::Server::~Server\n"          // What its reflection service read on a thread of its own.
      "race:grpc::Server::CallbackRequest\n"  // Its own request object, made on one of its threads, ended on another.
      // Unary calls that are answered from another thread: gRPC orders the answer and its own end of the call with a
      // mutex of its libraries.
      "race:grpc::ServerUnaryReactor::InternalBindCall\n"
      "race:grpc::internal::CallbackUnaryHandler\n"
      // gRPC's own threads are joined by its clean-up, which runs on a thread that nobody waits for when the last user
      // goes on one of its threads. The process may end first.
      "thread:grpc_core::Thread::Thread\n"
      // These open a directory and a memfd, whose descriptors may have the number of a socket that gRPC closed, unseen.
      "race:rubato::TuneLoopbackSockets\n"
      "race:rubato::SharedRegion::Take\n"
      // OpenMP's barriers are futexes of its own, unseen as well.
      "called_from_lib:libgomp.so\n"
      // Its kernels are made at run time and divide their work with OpenMP.
      "called_from_lib:libdnnl.so\n";
}

const char* __lsan_default_suppressions() {
  return
      // oneDNN and OpenCL's loader keep global tables until the process ends.
      "leak:libdnnl.so\n"
      "leak:libOpenCL.so\n";
}

}  // extern "C"
