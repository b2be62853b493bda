// The stream that work is enqueued on.
#ifndef AOTRITON_RUNTIME_H_
#define AOTRITON_RUNTIME_H_

#include <aotriton/config.h>
#include <hip/hip_runtime_api.h>

namespace AOTRITON_NS {

// On NVIDIA a CUstream is passed as a hipStream_t.
template <typename DeviceStreamType>
class StreamTemplate {
 public:
  StreamTemplate() = default;  // the null stream
  StreamTemplate(DeviceStreamType stream) : stream_(stream) {}

  DeviceStreamType native() const { return stream_; }

 private:
  DeviceStreamType stream_ = nullptr;
};

using Stream = StreamTemplate<hipStream_t>;

}  // namespace AOTRITON_NS

#endif  // AOTRITON_RUNTIME_H_
