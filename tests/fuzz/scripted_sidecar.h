#ifndef RUBATO_TESTS_FUZZ_SCRIPTED_SIDECAR_H_
#define RUBATO_TESTS_FUZZ_SCRIPTED_SIDECAR_H_

#include <string>

namespace rubato::client {

// How the sidecars that SidecarProcess::Start makes from now on answer, one byte for each request; those that come
// after the last byte are answered well. They are threads of this process. See Answer in scripted_sidecar.cc.
void SetSidecarAnswers(std::string answers);

}  // namespace rubato::client

#endif  // RUBATO_TESTS_FUZZ_SCRIPTED_SIDECAR_H_
