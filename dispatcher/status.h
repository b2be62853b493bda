// The answer of a step: success, or a hipError_t number with a text for people.
#ifndef AOTRITON_DISPATCHER_STATUS_H_
#define AOTRITON_DISPATCHER_STATUS_H_

#include <memory>
#include <string>
#include <utility>

namespace aotriton::dispatcher {

// The hipError_t values that the library itself gives. They are spelled out here because the
// dispatcher knows neither HIP nor CUDA; CUDA's driver uses the same numbers for the same things.
enum Code : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotBuilt = 6,  // hipErrorProfilerNotInitialized: upstream's code for "not built for this arch"
  kInvalidSymbol = 13,
  kNoDevice = 100,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kFileNotFound = 301,
  kNotSupported = 801,
  kUnknown = 999,
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // success; allocates nothing
  Status(int code, std::string text) : code_(code), text_(std::make_shared<const std::string>(std::move(text))) {}

  bool ok() const { return code_ == kSuccess; }
  int code() const { return code_; }
  std::string text() const { return text_ != nullptr ? *text_ : std::string(); }

 private:
  int code_ = kSuccess;
  // Out of the way: a warm call makes and drops some fifty successes.
  std::shared_ptr<const std::string> text_;
};

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_STATUS_H_
