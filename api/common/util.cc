#include <aotriton/util.h>

#include <cstdlib>
#include <cstring>

#include "dispatcher/gpus.h"
#include "dispatcher/report.h"

namespace AOTRITON_NS {
namespace {

namespace dispatcher = ::aotriton::dispatcher;
namespace platforms = ::aotriton::platforms;

// Asks for the arch of the stream's GPU, and which of its products that is; null if the library does not serve it.
const platforms::Arch* ArchOf(hipStream_t stream, int* mod = nullptr) {
  const platforms::Arch* arch = nullptr;
  const int code = dispatcher::Report([&] {
    dispatcher::StreamPlace where;
    dispatcher::Status status = dispatcher::Locate(stream, &where);
    if (status.ok() && mod != nullptr) *mod = where.gpu->mod();
    return status.ok() ? where.gpu->Arch(&arch) : status;
  });
  return code == dispatcher::kSuccess ? arch : nullptr;
}

bool HasLevel(hipStream_t stream, const char* level) {
  const platforms::Arch* arch = ArchOf(stream);
  return arch != nullptr && strcmp(arch->level, level) == 0;
}

}  // namespace

template class TensorView<1>;
template class TensorView<2>;
template class TensorView<3>;
template class TensorView<4>;

Gpu getGpuFromStream(hipStream_t stream) {
  int mod = 0;
  const platforms::Arch* arch = ArchOf(stream, &mod);
  if (arch == nullptr || strncmp(arch->name, "gfx", 3) != 0) return GPU_ARCH_UNKNOWN;
  // The digits of a gfx name are its number.
  const auto digits = static_cast<uint16_t>(strtoul(arch->name + 3, nullptr, 16));
  return static_cast<Gpu>(TRICAT(kAMD, digits, static_cast<uint16_t>(mod)));
}

bool isArchExperimentallySupported(hipStream_t stream) { return HasLevel(stream, "experimental"); }

bool isArchTechPreview(hipStream_t stream) { return HasLevel(stream, "tech_preview"); }

int getMultiProcessorCount(hipStream_t stream) {
  int count = 0;
  const int code = dispatcher::Report([&] {
    dispatcher::StreamPlace where;
    dispatcher::Status status = dispatcher::Locate(stream, &where);
    if (status.ok()) count = where.gpu->info().multiprocessors;
    return status;
  });
  return code == dispatcher::kSuccess && count > 0 ? count : 40;
}

}  // namespace AOTRITON_NS
