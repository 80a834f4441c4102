#ifndef RUBATO_COMMON_CONFIG_VALIDATE_PARTS_H_
#define RUBATO_COMMON_CONFIG_VALIDATE_PARTS_H_

#include <cstdint>
#include <string>

#include "common/config/error_list.h"
#include "common/model_spec.h"
#include "proto/job_config.pb.h"

namespace rubato {

// The parts of ValidateJobConfig. Each looks at its own message and at what that has to agree with.

// `model` is null when the model itself is wrong; what depends on its shapes is then not checked.
void ValidateData(const ModelSpec* model, const v1::JobConfig& config, ErrorList* errors);
// Its parts: data.columns, data.libsvm, and paths of a source.
void ValidateColumns(const ModelSpec* model, const v1::ColumnsData& columns, bool evaluates, ErrorList* errors);
void ValidateLibsvm(const ModelSpec* model, const v1::LibsvmData& libsvm, bool evaluates, ErrorList* errors);
void ValidatePaths(absl::string_view field, const google::protobuf::RepeatedPtrField<std::string>& paths, bool required,
                   absl::string_view allowed, ErrorList* errors);
// What a job whose model has tables may not have.
void ValidateTables(const v1::JobConfig& config, ErrorList* errors);
void ValidateOptimizer(const ModelSpec* model, const v1::JobConfig& config, ErrorList* errors);
void ValidateConsistency(const v1::JobConfig& config, ErrorList* errors);
// Batches of a step, at `path`.
void CheckSyncEvery(const std::string& path, int64_t sync_every, const v1::JobConfig& config, ErrorList* errors);
// consistency.policy and its settings.
void ValidatePolicy(const v1::JobConfig& config, ErrorList* errors);
// consistency.compensation.
void ValidateCompensation(const v1::JobConfig& config, ErrorList* errors);
// What a client's job (model.manifest) may not have.
void ValidateClientJob(const v1::JobConfig& config, ErrorList* errors);
void ValidateCompression(const ModelSpec* model, const v1::JobConfig& config, ErrorList* errors);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_VALIDATE_PARTS_H_
