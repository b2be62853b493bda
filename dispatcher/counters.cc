#include "dispatcher/counters.h"

#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

constexpr int kPerAllocation = 16384;

class Counters {
 public:
  bool FindOfStream(const Place& place, uint64_t stream, int32_t** counter) const {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto found = of_streams_.find({place, stream});
    if (found == of_streams_.end()) return false;
    *counter = found->second;
    return true;
  }

  Status OfStream(Driver* driver, const Place& place, uint64_t stream, int32_t** counter) {
    if (FindOfStream(place, stream, counter)) return Status();
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    int32_t*& made = of_streams_[{place, stream}];
    Status status;
    if (made == nullptr) status = Take(driver, place, &made);
    *counter = made;
    return status;
  }

  Status OfOneLaunch(Driver* driver, const Place& place, int32_t** counter) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    return Take(driver, place, counter);
  }

 private:
  // Those of an allocation that are left.
  struct Supply {
    int32_t* next = nullptr;
    int count = 0;
  };

  Status Take(Driver* driver, const Place& place, int32_t** counter) {
    Supply& supply = supplies_[place];
    if (supply.count == 0) {
      void* memory = nullptr;
      Status status = driver->AllocateZeroed(kPerAllocation * sizeof(int32_t), &memory);
      if (!status.ok()) return Status(status.code(), Text(status.text(), ", for counters of tiles"));
      supply = {static_cast<int32_t*>(memory), kPerAllocation};
    }
    *counter = supply.next++;
    --supply.count;
    return Status();
  }

  mutable std::shared_mutex mutex_;
  std::map<std::pair<Place, uint64_t>, int32_t*> of_streams_;
  std::map<Place, Supply> supplies_;
};

// Never destroyed: calls may come from exit handlers.
Counters& TheCounters() {
  static auto* const counters = new Counters;
  return *counters;
}

}  // namespace

Status FindCounter(Driver* driver, const Place& place, void* stream, int32_t** counter) {
  uint64_t id = 0;
  bool is_capturing = false;
  if (Status status = driver->Identify(stream, &id, &is_capturing); !status.ok()) return status;
  return is_capturing ? TheCounters().OfOneLaunch(driver, place, counter) : TheCounters().OfStream(driver, place, id, counter);
}

Status PrepareCounter(Driver* driver, const Place& place, void* stream) {
  uint64_t id = 0;
  bool is_capturing = false;
  if (Status status = driver->Identify(stream, &id, &is_capturing); !status.ok() || is_capturing) return status;
  int32_t* counter = nullptr;
  return TheCounters().OfStream(driver, place, id, &counter);
}

}  // namespace aotriton::dispatcher
