// Finds a library that the process may have loaded already.
#ifndef AOTRITON_DISPATCHER_DRIVER_SHARED_LIBRARY_H_
#define AOTRITON_DISPATCHER_DRIVER_SHARED_LIBRARY_H_

#include <initializer_list>
#include <string>

namespace aotriton::dispatcher {

class SharedLibrary {
 public:
  // Of all libraries that are loaded already, one whose SONAME or file name is in `names` or whose
  // file name starts with `stem` (wheels ship "libamdhip64-5f2e.so"); else the first of `names`
  // that can be loaded. "" or why there is none. Two copies of a GPU runtime in one process know
  // nothing of each other's streams, hence the order.
  std::string Open(std::initializer_list<const char*> names, const char* stem);

  // The address of a symbol; nullptr if there is none.
  void* Find(const char* symbol) const;

  // Sets `function` to the first symbol there is; false if there is none.
  template <typename Function>
  bool Bind(Function** function, std::initializer_list<const char*> symbols) const {
    for (const char* symbol : symbols) {
      *function = reinterpret_cast<Function*>(Find(symbol));
      if (*function != nullptr) return true;
    }
    return false;
  }

 private:
  void* handle_ = nullptr;  // stays open: its code must outlive every stream
};

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_DRIVER_SHARED_LIBRARY_H_
