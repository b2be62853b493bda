#include "tests/dispatch/support.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace support {

std::string PackOf(const std::string& arch) { return std::string(kPacks) + "/images/amd-" + arch + "/flash/attn_fwd.pack"; }

std::string BadPack(const std::string& defect) { return std::string(kPacks) + "/bad/" + defect + ".pack"; }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

Folder::Folder() {
  const char* parent = getenv("TEST_TMPDIR");
  path_ = std::string(parent != nullptr ? parent : "/tmp") + "/dispatch.XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) abort();
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Images::Images() { setenv("AOTRITON_IMAGES", folder_.path().c_str(), 1); }

Images::~Images() { unsetenv("AOTRITON_IMAGES"); }

std::string Images::PathOf(const std::string& arch, const std::string& vendor) const {
  return folder_.path() + "/" + vendor + "-" + arch + "/flash/attn_fwd.pack";
}

void Images::Install(const std::string& arch, const std::string& pack) const { WriteFile(PathOf(arch), ReadFile(pack)); }

aotriton_tensor Tensor(int32_t dtype, Shape sizes, uintptr_t address) {
  aotriton_tensor tensor = {};
  tensor.data = reinterpret_cast<void*>(address);
  tensor.dtype = dtype;
  tensor.rank = 4;
  uint64_t stride = 1;  // of absurd sizes it wraps around
  for (int i = 3; i >= 0; --i) {
    tensor.sizes[i] = sizes[i];
    tensor.strides[i] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(sizes[i]);
  }
  return tensor;
}

aotriton_tensor Logsumexp(int64_t batch, int64_t heads, int64_t seqlen_q, uintptr_t address) {
  aotriton_tensor tensor = Tensor(AOTRITON_FLOAT32, {1, batch, heads, seqlen_q}, address);
  tensor.rank = 3;
  for (int i = 0; i < 3; ++i) {
    tensor.sizes[i] = tensor.sizes[i + 1];
    tensor.strides[i] = tensor.strides[i + 1];
  }
  return tensor;
}

aotriton_attn_fwd_args Call() { return Call(AOTRITON_BFLOAT16, {2, 8, 1000, 64}, 2, 700, 64); }

aotriton_attn_fwd_args Call(int32_t dtype, Shape q, int64_t num_head_k, int64_t seqlen_k, int64_t head_dim_vo) {
  aotriton_attn_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.q = Tensor(dtype, q, 0x10000);
  args.k = Tensor(dtype, {q[0], num_head_k, seqlen_k, q[3]}, 0x20000);
  args.v = Tensor(dtype, {q[0], num_head_k, seqlen_k, head_dim_vo}, 0x30000);
  args.out = Tensor(dtype, {q[0], q[1], q[2], head_dim_vo}, 0x40000);
  args.logsumexp = Logsumexp(q[0], q[1], q[2], 0x50000);
  args.sm_scale = 0.125f;
  return args;
}

}  // namespace support
