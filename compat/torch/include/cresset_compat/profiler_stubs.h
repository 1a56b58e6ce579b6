// torch/csrc/profiler/stubs: a device's own marks and ranges for the profiler.
#pragma once

#include <cresset_compat/torch.h>

#include <cresset/dispatch/profiler_stubs.h>

#include <functional>
#include <memory>

namespace torch::profiler::impl {
using cresset::profiler::ProfilerStubs;
using cresset::profiler::ProfilerVoidEventStub;
using ProfilerEventStub = std::shared_ptr<void>;
/// The stubs of PrivateUse1; they must live as long as the process.
inline void registerPrivateUse1Methods(ProfilerStubs* stubs) { cresset::profiler::set_profiler_stubs(c10::kPrivateUse1, stubs); }
inline const ProfilerStubs* privateuse1Stubs() { return cresset::profiler::profiler_stubs(c10::kPrivateUse1); }
}  // namespace torch::profiler::impl
