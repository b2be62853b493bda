// Files of tests: packs, folders, trees of images. Needs no header of the library.
#ifndef AOTRITON_TESTS_DISPATCH_IMAGES_H_
#define AOTRITON_TESTS_DISPATCH_IMAGES_H_

#include <string>

namespace support {

inline constexpr const char* kKernels[] = {"attn_fwd", "attn_fwd_persistent", "bwd_preprocess", "bwd_dkdv",
                                           "bwd_dq",   "bwd_fused",      "debug_simulate_encoded_softmax",
                                           "debug_fill_dropout_rng"};

// Where the packs of make_test_pack.py lie, from the test's working directory.
inline constexpr char kPacks[] = "tests/dispatch/packs";
std::string PackOf(const std::string& arch, const std::string& kernel = "attn_fwd");  // an intact one
std::string BadPack(const std::string& defect);  // one for gfx942

std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& bytes);

// A new folder, gone with the object.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A folder of images that AOTRITON_IMAGES_DIR names while the object lives; empty at first.
class Images {
 public:
  Images();
  ~Images();
  // <folder>/<vendor>-<arch>/flash/<kernel>.pack
  std::string PathOf(const std::string& arch, const std::string& vendor = "amd", const std::string& kernel = "attn_fwd") const;
  // Puts the bytes of the file `pack` there, as attn_fwd's.
  void Install(const std::string& arch, const std::string& pack) const;
  // Puts an intact pack of every kernel there.
  void Install(const std::string& arch) const;

 private:
  Folder folder_;
};

}  // namespace support

#endif  // AOTRITON_TESTS_DISPATCH_IMAGES_H_
