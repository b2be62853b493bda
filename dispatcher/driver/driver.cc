#include "dispatcher/driver/driver.h"

#include <atomic>
#include <mutex>

#include "dispatcher/log.h"
#include "dispatcher/text.h"

namespace aotriton::dispatcher {

Status FindDriver(Driver** driver) {
  static std::atomic<Driver*> found{nullptr};
  *driver = found.load(std::memory_order_acquire);
  if (*driver != nullptr) return Status();

  static auto* const mutex = new std::mutex;  // never destroyed: calls may come from exit handlers
  const std::lock_guard<std::mutex> lock(*mutex);
  *driver = found.load(std::memory_order_relaxed);
  if (*driver != nullptr) return Status();
  const Status hip = OpenHip(driver);
  if (!hip.ok()) {
    const Status cuda = OpenCuda(driver);
    if (!cuda.ok()) return Status(kNoDevice, Text("no GPU was found. AMD: ", hip.text(), ". NVIDIA: ", cuda.text()));
  }
  Log(LogLevel::kOnce, "the driver is that of ", (*driver)->vendor());
  found.store(*driver, std::memory_order_release);
  return Status();
}

}  // namespace aotriton::dispatcher
