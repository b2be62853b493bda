#include "dispatcher/functions.h"

#include <map>
#include <mutex>
#include <shared_mutex>
#include <tuple>
#include <utility>

#include "dispatcher/log.h"
#include "dispatcher/relabel.h"
#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

// Equal code objects of a functional are one entry: they are told apart by place in the blob.
// Packs live as long as the process, so their address names them.
using Key = std::tuple<const Pack*, uint32_t /*blob*/, uint32_t /*offset*/, const char* /*symbol*/, uint32_t /*shared*/>;

struct Loaded {
  Bytes code;  // HIP reads the image after the module is loaded
  Function function;
};

class Functions {
 public:
  bool Find(const Place& place, const Key& key, Function* function) const {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto found = loaded_.find({place, key});
    if (found == loaded_.end()) return false;
    *function = found->second.function;
    return true;
  }

  void Add(const Place& place, const Key& key, Loaded loaded) {
    const std::unique_lock<std::shared_mutex> lock(mutex_);
    loaded_.emplace(std::make_pair(place, key), std::move(loaded));
  }

  // One load at a time; it does not hold up calls whose function is loaded.
  std::mutex loading;

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::pair<Place, Key>, Loaded> loaded_;
};

}  // namespace

Status LoadFunction(Driver* driver, const Place& place, const platforms::Arch& arch, const Launch& launch, Function* function) {
  static auto* const functions = new Functions;  // never destroyed: the GPU runtime may be gone by then
  const Pack::Functional functional = launch.pack->functional(launch.functional);
  const Pack::Variant variant = launch.pack->variant(launch.variant);
  const Key key{launch.pack, functional.blob, variant.offset, variant.symbol, variant.shared};
  if (functions->Find(place, key, function)) return Status();

  const std::lock_guard<std::mutex> lock(functions->loading);
  if (functions->Find(place, key, function)) return Status();
  Loaded loaded;
  if (Status status = launch.pack->LoadCode(functional, launch.variant, &loaded.code); !status.ok()) return status;
  const auto in_pack = [&](const Status& status) {
    return Status(status.code(), Text(status.text(), ", for the code object ", variant.symbol, " (", loaded.code.size,
                                      " bytes, ", variant.hash, ") of the pack ", launch.pack->path()));
  };
  // Its own label, or its family's, is what a runtime takes.
  const std::string label = launch.pack->Meta("arch");
  if (label != arch.name && label == arch.code_of) {
    if (Status status = Relabel(label, arch, &loaded.code); !status.ok()) return in_pack(status);
  }
  void* module = nullptr;
  if (Status status = driver->LoadModule(loaded.code.data.get(), &module); !status.ok()) return in_pack(status);
  Function& made = loaded.function;
  Status status = driver->GetFunction(module, variant.symbol, variant.shared, &made.handle);
  if (status.ok() && launch.num_programs_argument >= 0) {
    status = driver->ActiveWorkGroups(made.handle, launch.threads, launch.shared, &made.active_work_groups);
  }
  if (!status.ok()) {
    driver->UnloadModule(module);
    return in_pack(status);
  }
  Log(LogLevel::kOnce, "loaded the code object ", variant.symbol, " (", loaded.code.size, " bytes, ", variant.hash, ") of the pack ",
      launch.pack->path(), " on device ", place.device);
  *function = loaded.function;
  functions->Add(place, key, std::move(loaded));
  return Status();
}

}  // namespace aotriton::dispatcher
