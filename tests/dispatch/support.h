// What the dispatch tests share: packs, folders, calls.
#ifndef AOTRITON_TESTS_DISPATCH_SUPPORT_H_
#define AOTRITON_TESTS_DISPATCH_SUPPORT_H_

#include <aotriton/aotriton.h>

#include <array>
#include <cstdint>
#include <string>

namespace support {

inline constexpr const char* kKernels[] = {"attn_fwd", "attn_fwd_persistent", "bwd_preprocess", "bwd_dkdv",
                                           "bwd_dq",   "bwd_fused",      "debug_simulate_encoded_softmax"};

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

using Shape = std::array<int64_t, 4>;

// A contiguous tensor at a made-up address of the device.
aotriton_tensor Tensor(int32_t dtype, Shape sizes, uintptr_t address);
aotriton_tensor Logsumexp(int64_t batch, int64_t heads, int64_t seqlen_q, uintptr_t address);
aotriton_tensor Array(int64_t size, uintptr_t address);  // of int32

// An ordinary call: bf16, batch 2, 8 heads of q and 2 of k, 1000 queries, 700 keys, head_dim 64.
aotriton_attn_fwd_args Call();
aotriton_attn_fwd_args Call(int32_t dtype, Shape q, int64_t num_head_k, int64_t seqlen_k, int64_t head_dim_vo);


// Its backward, with a bias, its gradient and a delta.
aotriton_attn_bwd_args BackwardCall();

// The forward and the backward of three sequences, 1000 queries and 700 keys in all.
void MakeCompact(aotriton_attn_fwd_args* args);
void MakeCompact(aotriton_attn_bwd_args* args);

}  // namespace support

#endif  // AOTRITON_TESTS_DISPATCH_SUPPORT_H_
